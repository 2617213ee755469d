/* max_pool2d_backward.c: each window's gradient goes to its first maximum. */
#include "base/isa.h"
#include "device/cpu/pool/pool.h"
#include "device/cpu/pool/window_greater.h"
#include "device/cpu/vector.h"

typedef struct work {
    const pool_plan *plan;
    const float *x, *grad;
    float *x_grad;
} work;

/* One window, VEC_LANES channels: finds each channel's maximum, then hands the gradient to the
 * first tap that equals it. A NaN is the maximum where there is one, and only NaNs are not equal
 * then. */
static inline void give(bool tiles, const pool_window *p, int64_t width, int64_t channels,
                        const float *x, const float *grad, float *x_grad)
{
    vec most = vec_load(x + (p->top * width + p->left) * channels), left = vec_load(grad);
    for (int64_t i = p->top; i < p->bottom; i++)
        for (int64_t j = p->left; j < p->right; j++)
            most = window_greater(most, vec_load(x + (i * width + j) * channels));
    for (int64_t i = p->top; i < p->bottom; i++)
        for (int64_t j = p->left; j < p->right; j++) {
            float *to = x_grad + (i * width + j) * channels;
            vec value = vec_load(x + (i * width + j) * channels);
            vmask here = vec_eq(value, most) | vec_ne(value, value);
            vec given = vec_select(here, left, vec_splat(0));
            left = vec_select(here, vec_splat(0), left);
            vec_store(to, tiles ? given : vec_load(to) + given);
        }
}

/* The channels that do not fill a vector, one at a time. */
static inline void give_one(const pool_window *p, int64_t width, int64_t channels, const float *x,
                            float grad, float *x_grad)
{
    int64_t best = (p->top * width + p->left) * channels;
    for (int64_t i = p->top; i < p->bottom; i++)
        for (int64_t j = p->left; j < p->right; j++) {
            int64_t at = (i * width + j) * channels;
            best = pool_better(x[best], x[at]) ? at : best;
        }
    x_grad[best] += grad;
}

/* Piece: one image, because windows may overlap. */
static void pool_image(void *context, int64_t image)
{
    const work *w = context;
    const tutti_windows *windows = &w->plan->w;
    int64_t channels = w->plan->channels, size = windows->in[0] * windows->in[1] * channels;
    const float *x = w->x + image * size,
                *grad = w->grad + image * windows->out[0] * windows->out[1] * channels;
    float *x_grad = w->x_grad + image * size;
    bool tiles = w->plan->tiles && channels % VEC_LANES == 0; /* then every element is written */
    if (!tiles)
        memset(x_grad, 0, (size_t)size * sizeof *x_grad);
    for (int64_t row = 0; row < windows->out[0]; row++)
        for (int64_t column = 0; column < windows->out[1]; column++, grad += channels) {
            pool_window p = pool_window_at(windows, row, column);
            int64_t c = 0;
            for (; c + VEC_LANES <= channels; c += VEC_LANES)
                give(tiles, &p, windows->in[1], channels, x + c, grad + c, x_grad + c);
            for (; c < channels; c++)
                give_one(&p, windows->in[1], channels, x + c, grad[c], x_grad + c);
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
    .version = 2,
    .op = "max_pool2d_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = pool_score,
    .prepare = pool_prepare,
    .discard = free,
    .run = run,
};
