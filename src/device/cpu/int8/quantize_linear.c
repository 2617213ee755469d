/* quantize_linear.c: f32 as bytes with one scale and zero for all. */
#include <math.h>

#include "base/isa.h"
#include "program/kernel.h"

enum { PIECE = 16384 };

typedef struct work {
    const float *x;
    uint8_t *y;
    int64_t count;
    float scale, zero, low, high;
} work;

/* round(x / scale) + zero, between the type's bounds; NaN becomes the zero. */
static void piece(void *context, int64_t index)
{
    const work *w = context;
    int64_t end = (index + 1) * PIECE < w->count ? (index + 1) * PIECE : w->count;
    float scale = w->scale, zero = w->zero, low = w->low, high = w->high;
    const float *restrict x = w->x;
    uint8_t *restrict y = w->y;
    for (int64_t i = index * PIECE; i < end; i++) {
        float value = rintf(x[i] / scale) + zero;
        value = value != value ? zero : value;
        value = value < low ? low : value;
        value = value > high ? high : value;
        y[i] = (uint8_t)(int32_t)value;
    }
}

static int score(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    bool floats = node->inputs[0].dtype == TUTTI_F32 && node->inputs[1].dtype == TUTTI_F32;
    return floats && tutti_type_count(&node->inputs[1]) == 1 ? 100 : 0;
}

static tutti_status run(const tutti_call *call)
{
    const tutti_view *y = &call->outputs[0];
    bool is_signed = y->dtype == TUTTI_I8;
    work w = {.x = call->inputs[0].data,
              .y = y->data,
              .count = tutti_view_count(y),
              .scale = *(const float *)call->inputs[1].data,
              .zero = call->input_count > 2 ? (float)tutti_view_get(&call->inputs[2], 0) : 0,
              .low = is_signed ? -128 : 0,
              .high = is_signed ? 127 : 255};
    tutti_parallel(call, (w.count + PIECE - 1) / PIECE, piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_quantize_linear) = {
    .name = "quantize_linear.one",
    .version = 1,
    .op = "quantize_linear",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .run = run,
};
