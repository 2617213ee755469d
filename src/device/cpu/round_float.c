/* round_float.c: floats as the nearest numbers of a smaller float. Its units are powers of 2: an
 * element divided by its unit, rounded and multiplied again, in doubles without any other error. */
#include "base/isa.h"
#include "device/cpu/tile/loops.h"
#include "device/cpu/vector_f64.h"
#include "program/kernel.h"

enum { TILE = 512, PIECE = 16384 };

typedef struct work {
    const float *x;
    float *y;
    int64_t count;
    double least, mantissa, most, beyond; /* beyond: what a number above `most` becomes */
} work;

/* 2^n of a whole n in [-1022, 1023]; of -1023 it is 0. */
VEC_INLINE dvec power_of_two_f64(dvec n)
{
    return (dvec)((duvec)(n + (0x1.8p52 + 1023)) << 52);
}

VEC_INLINE dvec rounded(const work *w, dvec x)
{
    dvec size = dvec_abs(x);
    dvec exponent = (dvec)((duvec)size >> 52 | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023);
    exponent = dvec_at_least(exponent, w->least);
    dvec q = size * power_of_two_f64(w->mantissa - exponent);
    q = dvec_select(dvec_lt(q, dvec_splat(0x1p51)), (q + 0x1.8p52) - 0x1.8p52, q);
    dvec y = q * power_of_two_f64(exponent - w->mantissa);
    y = dvec_select(dvec_gt(size, dvec_splat(0x1p1000)), size, y);
    y = dvec_select(dvec_gt(y, dvec_splat(w->most)), dvec_splat(w->beyond), y);
    return dvec_select(dvec_ne(x, x), x, dvec_copysign(y, x));
}

static void round_float_piece(void *context, int64_t index)
{
    const work *w = context;
    const int64_t end = (index + 1) * PIECE < w->count ? (index + 1) * PIECE : w->count;
    double tile[TILE];
    for (int64_t at = index * PIECE; at < end; at += TILE) {
        const int64_t count = end - at < TILE ? end - at : TILE;
        const float *x = w->x + at;
        float *y = w->y + at;
        TILE_FOR(int64_t i = 0; i < count; i++)
        tile[i] = (double)x[i];
        for (int64_t i = count; i % DVEC_LANES != 0; i++)
            tile[i] = 0;
        for (int64_t i = 0; i < count; i += DVEC_LANES)
            dvec_store(tile + i, rounded(w, dvec_load(tile + i)));
        TILE_FOR(int64_t i = 0; i < count; i++)
        y[i] = (float)tile[i];
    }
}

/* A unit above every float, or of the floats' own precision, is as good as one further away. */
static double bounded(int64_t value, int64_t low, int64_t high)
{
    return (double)(value < low ? low : value > high ? high : value);
}

static int round_float_score(const tutti_kernel_query *query)
{
    return query->node.inputs[0].dtype == TUTTI_F32 && query->node.outputs[0].dtype == TUTTI_F32
               ? 100
               : 0;
}

static tutti_status round_float_run(const tutti_kernel_call *call)
{
    const bool saturate = tutti_attr_int(call->attrs, call->attr_count, "saturate") != 0;
    const bool infinite = tutti_attr_int(call->attrs, call->attr_count, "infinite") != 0;
    work w = {.x = call->inputs[0].data,
              .y = call->outputs[0].data,
              .count = tutti_view_count(&call->outputs[0]),
              .least = bounded(tutti_attr_int(call->attrs, call->attr_count, "least"), -400, 400),
              .mantissa = bounded(tutti_attr_int(call->attrs, call->attr_count, "mantissa"), 0, 52),
              .most = tutti_attr_float(call->attrs, call->attr_count, "most")};
    w.beyond = saturate ? w.most : infinite ? (double)INFINITY : (double)NAN;
    tutti_parallel(call, (w.count + PIECE - 1) / PIECE, round_float_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_round_float) = {
    .name = "round_float.tiles",
    .version = 1,
    .op = "round_float",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = 1,
    .score = round_float_score,
    .run = round_float_run,
};
