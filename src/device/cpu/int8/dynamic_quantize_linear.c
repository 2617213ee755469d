/* dynamic_quantize_linear.c: floats as u8 by their own smallest and largest. */
#include "base/isa.h"
#include "device/cpu/int8/quantize.h"
#include "device/cpu/tile/loops.h"
#include "ops/quantized/quantized.h"
#include "program/kernel.h"

enum { PIECE = 16384 };

typedef struct work {
    const float *x;
    uint8_t *y;
    float *lows, *highs; /* of pieces */
    int64_t count;
    float scale, zero;
} work;

/* The smallest and largest of a piece and 0; what is not a number does not count. */
static void find_extremes(void *context, int64_t index)
{
    const work *w = context;
    const float *x = w->x + index * PIECE;
    const int64_t count = w->count - index * PIECE < PIECE ? w->count - index * PIECE : PIECE;
    vec low[2] = {{0}}, high[2] = {{0}};
    for (int64_t i = 0; i < count; i += 2 * VEC_LANES)
        VEC_UNROLL for (int k = 0; k < 2; k++)
        {
            const int64_t at = i + k * VEC_LANES, rest = count - at;
            if (rest <= 0)
                continue;
            vec value = rest < VEC_LANES ? tile_load_rest(x + at, rest) : vec_load(x + at);
            low[k] = vec_select(vec_lt(value, low[k]), value, low[k]);
            high[k] = vec_select(vec_gt(value, high[k]), value, high[k]);
        }
    float least = 0, most = 0;
    for (int i = 0; i < 2 * VEC_LANES; i++) {
        float below = low[i / VEC_LANES][i % VEC_LANES], above = high[i / VEC_LANES][i % VEC_LANES];
        least = below < least ? below : least;
        most = above > most ? above : most;
    }
    w->lows[index] = least;
    w->highs[index] = most;
}

static void quantize(void *context, int64_t index)
{
    const work *w = context;
    const int64_t count = w->count - index * PIECE < PIECE ? w->count - index * PIECE : PIECE;
    const float *x = w->x + index * PIECE, scale = w->scale, zero = w->zero;
    uint8_t *y = w->y + index * PIECE;
    TILE_FOR(int64_t i = 0; i < count; i++)
    y[i] = quantized(x[i], scale, zero, false);
}

static int64_t pieces_of(int64_t count)
{
    return (count + PIECE - 1) / PIECE;
}

static int dynamic_quantize_linear_score(const tutti_kernel_query *query)
{
    const tutti_type *x = &query->node.inputs[0];
    return x->dtype == TUTTI_F32 && tutti_type_is_static(x) ? 100 : 0;
}

static size_t dynamic_quantize_linear_workspace(const tutti_kernel_query *query)
{
    return (size_t)pieces_of(tutti_type_count(&query->node.inputs[0])) * 2 * sizeof(float);
}

static tutti_status dynamic_quantize_linear_run(const tutti_kernel_call *call)
{
    const int64_t count = tutti_view_count(&call->inputs[0]), pieces = pieces_of(count);
    work w = {.x = call->inputs[0].data,
              .y = call->outputs[0].data,
              .lows = call->workspace,
              .highs = (float *)call->workspace + pieces,
              .count = count};
    float low = 0, high = 0;
    tutti_parallel(call, pieces, find_extremes, &w);
    for (int64_t i = 0; i < pieces; i++) {
        low = w.lows[i] < low ? w.lows[i] : low;
        high = w.highs[i] > high ? w.highs[i] : high;
    }
    w.scale = high > low ? (high - low) / 255 : 1;
    const int32_t zero = tutti__saturate(-low / w.scale, 0, TUTTI_U8);
    w.zero = (float)zero;
    tutti_parallel(call, pieces, quantize, &w);
    *(float *)call->outputs[1].data = w.scale;
    *(uint8_t *)call->outputs[2].data = (uint8_t)zero;
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_dynamic_quantize_linear) = {
    .name = "dynamic_quantize_linear.pieces",
    .version = 1,
    .op = "dynamic_quantize_linear",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = dynamic_quantize_linear_score,
    .workspace = dynamic_quantize_linear_workspace,
    .run = dynamic_quantize_linear_run,
};
