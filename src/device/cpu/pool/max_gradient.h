/* max_gradient.h: the gradient of max_pool2d(x), for files compiled once for each instruction set:
 * each window's gradient goes to its first maximum. With `relu` x is relu(z), and what comes out is
 * the gradient of z. */
#ifndef TUTTI_DEVICE_CPU_POOL_MAX_GRADIENT_H
#define TUTTI_DEVICE_CPU_POOL_MAX_GRADIENT_H

#include "device/cpu/pool/lines.h"
#include "device/cpu/pool/pool.h"

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

/* One tap of `count` windows side by side, as max_give does it. */
VEC_INLINE void max_give_tap(int64_t count, const float *x, const float *most, float *left,
                             float *x_grad)
{
    for (int64_t k = 0; k < count; k += VEC_LANES) {
        const int64_t rest = count - k < VEC_LANES ? count - k : 0;
        vec value = tile_load_some(x + k, rest), mine = tile_load_some(left + k, rest);
        vmask here = vec_eq(value, tile_load_some(most + k, rest)) | vec_ne(value, value);
        tile_store_some(x_grad + k,
                        tile_load_some(x_grad + k, rest) + vec_select(here, mine, vec_splat(0)),
                        rest);
        tile_store_some(left + k, vec_select(here, vec_splat(0), mine), rest);
    }
}

/* Columns [first, end) of a row, see lines.h; all windows have a gradient of 0 but those that the
 * strides leave. x, grad and x_grad are of the image and the row. */
VEC_INLINE void max_give_line(bool relu, const pool_plan *plan, const pool_lines *l, int64_t row,
                              int64_t first, int64_t end, const float *x, const float *grad,
                              float *x_grad)
{
    const tutti_windows *w = &plan->w;
    const int64_t channels = plan->channels, width = w->in[1] * channels;
    const int64_t spread = pool_spread(l, end - first, channels);
    const pool_window p = pool_window_at(w, row, first);
    const int64_t corner = p.top * width + p.left * channels, rows = p.bottom - p.top;
    float most[POOL_LINE], left[POOL_LINE];
    memcpy(most, x + corner, (size_t)spread * sizeof *most);
    memset(left, 0, (size_t)spread * sizeof *left);
    pool_put(l, grad + first * channels, end - first, channels, left);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i == 0; j < w->size[1]; j++) {
            const float *from = x + corner + i * width + j * l->tap;
            ROW_MAP(most, spread, vec_maximum(ROW_AT(most), ROW_AT(from)));
        }
    if (relu)
        ROW_MAP(left, spread, vec_select(vec_gt(ROW_AT(most), S(0)), ROW_AT(left), S(0)));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < w->size[1]; j++) {
            int64_t at = corner + i * width + j * l->tap;
            max_give_tap(spread, x + at, most, left, x_grad + at);
        }
}

/* Piece: one image, because windows may overlap. */
VEC_INLINE void max_gradient_image(bool relu, const max_gradient *w, int64_t image)
{
    const tutti_windows *windows = &w->plan->w;
    int64_t channels = w->plan->channels, size = windows->in[0] * windows->in[1] * channels;
    const float *x = w->x + image * size,
                *grad = w->grad + image * windows->out[0] * windows->out[1] * channels;
    float *x_grad = w->x_grad + image * size;
    const pool_lines l = pool_lines_of(windows, channels); /* which add */
    bool tiles = w->plan->tiles && channels % VEC_LANES == 0 && l.first == l.end;
    bool pairs = tiles && windows->size[0] == 2 && windows->size[1] == 2;
    if (!tiles) /* else every element is written */
        memset(x_grad, 0, (size_t)size * sizeof *x_grad);
    for (int64_t row = 0; row < windows->out[0]; row++)
        for (int64_t column = 0; column < windows->out[1]; column++, grad += channels) {
            if (column == l.first && column < l.end) {
                const float *line = grad - column * channels;
                for (; column < l.end; column = pool_block_end(&l, column))
                    max_give_line(relu, w->plan, &l, row, column, pool_block_end(&l, column), x,
                                  line, x_grad);
                grad = line + column * channels;
                if (column == windows->out[1])
                    break;
            }
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
