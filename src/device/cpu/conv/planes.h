/* planes.h: convolutions with few filters, for files compiled once for each instruction set.
 *
 * Where filters fill a register badly, a register holds neighbours along a row instead: a spot. The
 * channels of the input are taken apart, each into a plane of pixels,. */
#ifndef TUTTI_DEVICE_CPU_CONV_PLANES_H
#define TUTTI_DEVICE_CPU_CONV_PLANES_H

#include <string.h>

#include "device/cpu/conv/walk.h"
#include "device/cpu/vector.h"

enum { PLANE_FILTERS = 8 };

/* Input of some rows of outputs, as planes. Sizes are in pixels. */
typedef struct planes {
    int64_t wide;    /* spots of a row */
    int64_t row;     /* from the input of a row of outputs to the next */
    int64_t reach;   /* from the input of an output to that of its last tap */
    int64_t plane;   /* of one channel */
    int64_t rows;    /* of outputs, the most at once */
    int64_t filters; /* filled up to what a tile has */
} planes;

/* False unless spots fill registers better than filters do, by so many percent. */
static inline bool planes_make(const tutti_convolution *c, bool backward, int64_t rows,
                               int64_t percent, planes *ret)
{
    const tutti_windows *w = &c->windows;
    tutti_conv_walk walk = tutti__conv_walk_sizes(c, backward);
    if (walk.filters > PLANE_FILTERS || w->stride[1] != 1 || (backward && w->stride[0] != 1))
        return false;
    ret->wide = (walk.out[1] + VEC_LANES - 1) / VEC_LANES;
    int64_t registers = (walk.filters + VEC_LANES - 1) / VEC_LANES;
    /* out / (wide lanes) against filters / (registers lanes) */
    if (100 * walk.out[1] * registers < percent * walk.filters * ret->wide)
        return false;
    ret->row = w->stride[0] * walk.in[1];
    ret->reach = (w->size[0] - 1) * w->dilation[0] * walk.in[1] + (w->size[1] - 1) * w->dilation[1];
    ret->rows = rows;
    ret->plane = ((rows - 1) * ret->row + ret->reach + ret->wide * VEC_LANES + VEC_LANES) /
                 VEC_LANES * VEC_LANES;
    ret->filters = walk.filters <= 4 ? 4 : walk.filters <= 6 ? 6 : PLANE_FILTERS;
    return true;
}

static inline int64_t planes_floats(const planes *p, int64_t channels)
{
    return channels * p->plane;
}

VEC_INLINE void take_pixels(int64_t channels, const float *x, int64_t pixels, int64_t plane,
                            float *to)
{
    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < pixels; i++)
            to[c * plane + i] = x[i * channels + c];
}

/* Four channels at a time. */
static inline void take_fours(int64_t channels, const float *x, int64_t pixels, int64_t plane,
                              float *to)
{
    int64_t i = 0;
    for (; i + 4 <= pixels; i += 4)
        for (int64_t c = 0; c < channels; c += 4) {
            const float *from = x + i * channels + c;
            float *at = to + c * plane + i;
            quad r0 = *(const quad_unaligned *)from;
            quad r1 = *(const quad_unaligned *)(from + channels);
            quad r2 = *(const quad_unaligned *)(from + 2 * channels);
            quad r3 = *(const quad_unaligned *)(from + 3 * channels);
            quad_transpose(&r0, &r1, &r2, &r3);
            *(quad_unaligned *)at = r0;
            *(quad_unaligned *)(at + plane) = r1;
            *(quad_unaligned *)(at + 2 * plane) = r2;
            *(quad_unaligned *)(at + 3 * plane) = r3;
        }
    take_pixels(channels, x + i * channels, pixels - i, plane, to + i);
}

/* Takes `pixels` pixels apart, as many as a plane has at most; zeros follow. */
static void planes_take(const planes *p, int64_t channels, const float *x, int64_t pixels,
                        float *to)
{
    pixels = pixels < p->plane ? pixels : p->plane;
    if (channels == 1)
        memcpy(to, x, (size_t)pixels * sizeof *to);
    else if (channels == 3)
        take_pixels(3, x, pixels, p->plane, to);
    else if (channels % 4 == 0)
        take_fours(channels, x, pixels, p->plane, to);
    else
        take_pixels(channels, x, pixels, p->plane, to);
    for (int64_t c = 0; c < channels; c++)
        memset(to + c * p->plane + pixels, 0, (size_t)(p->plane - pixels) * sizeof *to);
}

#endif
