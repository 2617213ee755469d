/* max_gradient.h: the gradient of max_pool2d(x), for files compiled once for each instruction set:
 * each window's gradient goes to its first maximum. With `relu` x is relu(z), and what comes out is
 * the gradient of z. */
#ifndef TUTTI_DEVICE_CPU_POOL_MAX_GRADIENT_H
#define TUTTI_DEVICE_CPU_POOL_MAX_GRADIENT_H

#include "device/cpu/pool/pool.h"
#include "device/cpu/vector.h"

typedef struct max_gradient {
    const pool_plan *plan;
    const float *x, *grad;
    float *x_grad;
} max_gradient;

/* One window, VEC_LANES channels: finds each channel's maximum, then hands the gradient to the
 * first tap that equals it, with `relu` if that is above 0. A NaN is the maximum where there is
 * one, and only NaNs are not equal then. */
VEC_INLINE void max_give(bool relu, bool tiles, int64_t rows, int64_t columns, int64_t row,
                         int64_t channels, const float *x, const float *grad, float *x_grad)
{
    vec most = vec_load(x), left = vec_load(grad);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i == 0; j < columns; j++)
            most = vec_maximum(most, vec_load(x + i * row + j * channels));
    if (relu)
        left = vec_select(vec_gt(most, vec_splat(0)), left, vec_splat(0));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float *to = x_grad + i * row + j * channels;
            vec value = vec_load(x + i * row + j * channels);
            vmask here = vec_eq(value, most) | vec_ne(value, value);
            vec given = vec_select(here, left, vec_splat(0));
            left = vec_select(here, vec_splat(0), left);
            vec_store(to, tiles ? given : vec_load(to) + given);
        }
}

/* The channels that do not fill a vector, one at a time. */
static inline void max_give_one(bool relu, const pool_window *p, int64_t width, int64_t channels,
                                const float *x, float grad, float *x_grad)
{
    int64_t best = (p->top * width + p->left) * channels;
    for (int64_t i = p->top; i < p->bottom; i++)
        for (int64_t j = p->left; j < p->right; j++) {
            int64_t at = (i * width + j) * channels;
            best = pool_better(x[best], x[at]) ? at : best;
        }
    x_grad[best] += relu && !(x[best] > 0) ? 0 : grad;
}

/* Piece: one image, because windows may overlap. */
VEC_INLINE void max_gradient_image(bool relu, const max_gradient *w, int64_t image)
{
    const tutti_windows *windows = &w->plan->w;
    int64_t channels = w->plan->channels, size = windows->in[0] * windows->in[1] * channels;
    const float *x = w->x + image * size,
                *grad = w->grad + image * windows->out[0] * windows->out[1] * channels;
    float *x_grad = w->x_grad + image * size;
    bool tiles = w->plan->tiles && channels % VEC_LANES == 0; /* then every element is written */
    bool pairs = tiles && windows->size[0] == 2 && windows->size[1] == 2;
    if (!tiles)
        memset(x_grad, 0, (size_t)size * sizeof *x_grad);
    for (int64_t row = 0; row < windows->out[0]; row++)
        for (int64_t column = 0; column < windows->out[1]; column++, grad += channels) {
            pool_window p = pool_window_at(windows, row, column);
            int64_t c = 0, at = (p.top * windows->in[1] + p.left) * channels,
                    rows = p.bottom - p.top, columns = p.right - p.left,
                    line = windows->in[1] * channels;
            for (; c + VEC_LANES <= channels && pairs; c += VEC_LANES)
                max_give(relu, true, 2, 2, line, channels, x + at + c, grad + c, x_grad + at + c);
            for (; c + VEC_LANES <= channels; c += VEC_LANES)
                max_give(relu, tiles, rows, columns, line, channels, x + at + c, grad + c,
                         x_grad + at + c);
            for (; c < channels; c++)
                max_give_one(relu, &p, windows->in[1], channels, x + c, grad[c], x_grad + c);
        }
}

#endif
