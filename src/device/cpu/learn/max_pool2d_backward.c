/* max_pool2d_backward.c: each window's gradient goes to its first maximum. */
#include "device/cpu/learn/pool.h"
#include "program/isa.h"

#define LANES 64 /* channels at a time */

typedef struct work {
    const pool_plan *plan;
    const float *x, *grad;
    float *x_grad;
} work;

/* One window, channels [0, count): finds the tap of each channel's maximum, then hands the gradient out
 * tap by tap, so that memory is walked in rows. */
static inline void give(const pool_window *p, int64_t width, int64_t channels, int64_t count, const float *x,
                        const float *grad, float *x_grad)
{
    float best[LANES];
    int32_t at[LANES] = {0}, tap = 0;
    memcpy(best, x + (p->top * width + p->left) * channels, (size_t)count * sizeof *best);
    for (int64_t i = p->top; i < p->bottom; i++)
        for (int64_t j = p->left; j < p->right; j++, tap++) {
            const float *from = x + (i * width + j) * channels;
            for (int64_t c = 0; c < count; c++) {
                bool better = pool_better(best[c], from[c]);
                best[c] = better ? from[c] : best[c];
                at[c] = better ? tap : at[c];
            }
        }
    tap = 0;
    for (int64_t i = p->top; i < p->bottom; i++)
        for (int64_t j = p->left; j < p->right; j++, tap++) {
            float *to = x_grad + (i * width + j) * channels;
            for (int64_t c = 0; c < count; c++)
                to[c] += at[c] == tap ? grad[c] : 0;
        }
}

/* Piece: one image, because windows may overlap. */
static void pool_image(void *context, int64_t image)
{
    const work *w = context;
    const tutti_windows *windows = &w->plan->w;
    int64_t channels = w->plan->channels, size = windows->in[0] * windows->in[1] * channels;
    const float *x = w->x + image * size, *grad = w->grad + image * windows->out[0] * windows->out[1] * channels;
    float *x_grad = w->x_grad + image * size;
    memset(x_grad, 0, (size_t)size * sizeof *x_grad);
    for (int64_t row = 0; row < windows->out[0]; row++)
        for (int64_t column = 0; column < windows->out[1]; column++, grad += channels) {
            pool_window p = pool_window_at(windows, row, column);
            for (int64_t c = 0; c < channels; c += LANES)
                give(&p, windows->in[1], channels, channels - c < LANES ? channels - c : LANES, x + c, grad + c, x_grad + c);
        }
}

static tutti_status run(const tutti_call *call)
{
    work w = {call->plan, call->inputs[0].data, call->inputs[1].data, call->outputs[0].data};
    tutti_parallel(call, w.plan->batch, pool_image, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_max_pool2d_backward_images) = {
    .name = "max_pool2d_backward.images",
    .version = 1,
    .op = "max_pool2d_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = pool_score,
    .prepare = pool_prepare,
    .discard = free,
    .run = run,
};
