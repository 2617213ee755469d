/* quantize_linear.c: f32 as bytes with one scale and zero for all, or one for each index of an
 * axis.
 */
#include "base/isa.h"
#include "device/cpu/int8/quantize.h"
#include "device/cpu/tile/loops.h"
#include "program/kernel.h"

enum { PIECE = 16384, COLUMNS = 512 };

/* x [outer, size, inner], whose scales and zeros are [size]. Runs are the elements of one scale
 * side by side (PIECE at a time where there is one for all); where inner is 1 those of one outer
 * index. */
typedef struct work {
    const float *x, *scales;
    const void *zeros; /* bytes of y's type, or NULL */
    uint8_t *y;
    int64_t count, size, inner, runs, length, runs_of_piece;
    bool is_signed;
} work;

/* Those of [first, first + count). */
static void zeros_at(const work *w, int64_t first, int64_t count, float *ret_zeros)
{
    const int8_t *lower = w->zeros;
    const uint8_t *upper = w->zeros;
    if (w->zeros == NULL)
        for (int64_t i = 0; i < count; i++)
            ret_zeros[i] = 0;
    else if (w->is_signed)
        for (int64_t i = 0; i < count; i++)
            ret_zeros[i] = (float)lower[first + i];
    else
        for (int64_t i = 0; i < count; i++)
            ret_zeros[i] = (float)upper[first + i];
}

static void with_one(const work *w, int64_t run, int64_t k)
{
    const int64_t at = run * w->length;
    const int64_t count = w->count - at < w->length ? w->count - at : w->length;
    const float *x = w->x + at, scale = w->scales[k];
    const bool is_signed = w->is_signed;
    uint8_t *y = w->y + at;
    float zero;
    zeros_at(w, k, 1, &zero);
    TILE_FOR(int64_t i = 0; i < count; i++)
    y[i] = quantized(x[i], scale, zero, is_signed);
}

static void with_each(const work *w, int64_t at)
{
    const bool is_signed = w->is_signed;
    float zeros[COLUMNS];
    for (int64_t k = 0; k < w->size; k += COLUMNS) {
        const int64_t count = w->size - k < COLUMNS ? w->size - k : COLUMNS;
        const float *x = w->x + at + k, *scales = w->scales + k;
        uint8_t *y = w->y + at + k;
        zeros_at(w, k, count, zeros);
        TILE_FOR(int64_t i = 0; i < count; i++)
        y[i] = quantized(x[i], scales[i], zeros[i], is_signed);
    }
}

static void quantize_linear_piece(void *context, int64_t index)
{
    const work *w = context;
    int64_t end = (index + 1) * w->runs_of_piece;
    for (int64_t r = index * w->runs_of_piece; r < end && r < w->runs; r++)
        if (w->size > 1 && w->inner == 1)
            with_each(w, r * w->length);
        else
            with_one(w, r, r % w->size);
}

static int quantize_linear_score(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    const tutti_type *scale = &node->inputs[1];
    bool one = tutti_type_count(scale) == 1;
    bool axis = scale->rank == 1 && tutti_attr_int(node->attrs, node->attr_count, "block") == 0;
    return node->inputs[0].dtype == TUTTI_F32 && scale->dtype == TUTTI_F32 &&
                   (one || (axis && tutti_type_count(scale) > 0))
               ? 100
               : 0;
}

static tutti_status quantize_linear_run(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    int64_t count = tutti_view_count(y);
    work w = {.x = x->data,
              .scales = call->inputs[1].data,
              .zeros = call->input_count > 2 ? call->inputs[2].data : NULL,
              .y = y->data,
              .size = tutti_view_count(&call->inputs[1]),
              .inner = 1,
              .is_signed = y->dtype == TUTTI_I8};
    int64_t axis = tutti_attr_int(call->attrs, call->attr_count, "axis");
    axis += axis < 0 ? x->rank : 0;
    for (int i = (int)axis + 1; w.size > 1 && i < x->rank; i++)
        w.inner *= x->dims[i];
    if (count == 0)
        return TUTTI_OK;
    w.count = count;
    w.length = w.size == 1 ? PIECE : w.inner == 1 ? w.size : w.inner;
    w.runs = (count + w.length - 1) / w.length;
    w.runs_of_piece = w.size == 1 ? 1 : PIECE / w.length + 1;
    tutti_parallel(call, (w.runs + w.runs_of_piece - 1) / w.runs_of_piece, quantize_linear_piece,
                   &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_quantize_linear) = {
    .name = "quantize_linear.axis",
    .version = 1,
    .op = "quantize_linear",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = quantize_linear_score,
    .run = quantize_linear_run,
};
