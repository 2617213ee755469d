/* winograd.h: what the kernels of 3 x 3 convolutions with stride 1 share that work on transformed
 * tiles, F(4x4, 3x3), for files compiled once for each instruction set.
 *
 * An output tile of 4 x 4 needs an input tile d of 6 x 6. With the points 0, +-1/sqrt 2, +-sqrt 2
 * and infinity, which keep the error of f32 near that of the direct sum,
 *     y = A' [ (G g G') . (B' d B) ] A       g the kernel, . element by element
 * so that each of the 36 elements is a product over channels of its own: 4 times fewer
 * multiplications than the direct sum. Transposed it gives the gradient of the kernel:
 *     dg = G' [ (B' d B) . (A dy A') ] G
 * Every tile is computed alike wherever it stands: rows are invariant. */
#ifndef TUTTI_DEVICE_CPU_CONV_WINOGRAD_H
#define TUTTI_DEVICE_CPU_CONV_WINOGRAD_H

#include <stdlib.h>
#include <string.h>

#include "device/cpu/conv/windows.h"
#include "device/cpu/conv/winograd_setting.h"
#include "device/cpu/slots.h"
#include "device/cpu/vector.h"

enum { POINTS = 36, PATCH = 6, CORE = 4 };
#define ROOT 1.41421356237309505f
#define HALF_ROOT 0.70710678118654752f
#define QUARTER_ROOT 0.35355339059327376f

/* B' d, for one column of a tile. */
VEC_INLINE void transform_input(const vec d[PATCH], vec t[PATCH])
{
    vec even = vec_fnma(vec_splat(2), d[2], d[4]), odd = d[3] * HALF_ROOT;
    odd = vec_fnma(vec_splat(ROOT), d[1], odd);
    vec far_even = vec_fnma(vec_splat(0.5F), d[2], d[4]), far_odd = d[3] * ROOT;
    far_odd = vec_fnma(vec_splat(HALF_ROOT), d[1], far_odd);
    t[0] = vec_fnma(vec_splat(2.5F), d[2], d[0] + d[4]);
    t[1] = even + odd;
    t[2] = even - odd;
    t[3] = far_even + far_odd;
    t[4] = far_even - far_odd;
    t[5] = vec_fnma(vec_splat(2.5F), d[3], d[1] + d[5]);
}

/* A' m */
VEC_INLINE void transform_output(const vec m[PATCH], vec y[CORE])
{
    vec sum = m[1] + m[2], difference = m[1] - m[2], far_sum = m[3] + m[4],
        far_difference = m[3] - m[4];
    y[0] = m[0] + sum + far_sum;
    y[1] = vec_fma(vec_splat(ROOT), far_difference, difference * HALF_ROOT);
    y[2] = vec_fma(vec_splat(2), far_sum, sum * 0.5F);
    y[3] = vec_fma(vec_splat(2 * ROOT), far_difference, difference * QUARTER_ROOT) + m[5];
}

/* G g */
VEC_INLINE void transform_kernel(const vec g[3], vec u[PATCH])
{
    vec even = (g[0] + g[2] * 0.5F) * (-2.0F / 3), odd = g[1] * (-ROOT / 3);
    vec far_even = (g[0] + g[2] * 2.0F) * (1.0F / 6), far_odd = g[1] * (ROOT / 6);
    u[0] = g[0];
    u[1] = even + odd;
    u[2] = even - odd;
    u[3] = far_even + far_odd;
    u[4] = far_even - far_odd;
    u[5] = g[2];
}

/* A y */
VEC_INLINE void transform_gradient(const vec y[CORE], vec z[PATCH])
{
    vec even = vec_fma(vec_splat(0.5F), y[2], y[0]), odd = y[1] * HALF_ROOT;
    odd = vec_fma(vec_splat(QUARTER_ROOT), y[3], odd);
    vec far_even = vec_fma(vec_splat(2), y[2], y[0]), far_odd = y[1] * ROOT;
    far_odd = vec_fma(vec_splat(2 * ROOT), y[3], far_odd);
    z[0] = y[0];
    z[1] = even + odd;
    z[2] = even - odd;
    z[3] = far_even + far_odd;
    z[4] = far_even - far_odd;
    z[5] = y[3];
}

/* G' u */
VEC_INLINE void transform_back(const vec u[PATCH], vec g[3])
{
    vec sum = (u[1] + u[2]) * (-2.0F / 3), difference = u[1] - u[2];
    vec far_sum = (u[3] + u[4]) * (1.0F / 6), far_difference = u[3] - u[4];
    g[0] = u[0] + sum + far_sum;
    g[1] = vec_fma(vec_splat(ROOT / 6), far_difference, difference * (-ROOT / 3));
    g[2] = vec_fma(vec_splat(0.5F), sum, vec_fma(vec_splat(2), far_sum, u[5]));
}

VEC_INLINE vec load_some(const float *p, int64_t count)
{
#if VEC_MASKED
    return vec_load_part(p, count);
#else
    float some[VEC_LANES] = {0};
    memcpy(some, p, (size_t)count * sizeof *some);
    return vec_load(some);
#endif
}

VEC_INLINE void store_some(float *p, vec x, int64_t count)
{
#if VEC_MASKED
    vec_store_part(p, x, count);
#else
    float some[VEC_LANES];
    vec_store(some, x);
    memcpy(p, some, (size_t)count * sizeof *some);
#endif
}

static inline int64_t round_to(int64_t a, int64_t b)
{
    return (a + b - 1) / b * b;
}

/* A grid of tiles over the outputs [out, out] of every image, one after the other. */
typedef struct winograd_grid {
    int64_t batch, in[2], out[2], before[2]; /* tile (0, 0) begins at input -before */
    int64_t tiles[2], count;
} winograd_grid;

/* With x -> y, or, for the gradient of x, turned round. False where tiles do not apply. */
static inline bool winograd_grid_make(const tutti_convolution *c, bool turned, winograd_grid *ret)
{
    const tutti_windows *w = &c->windows;
    if (!tutti__winograd_wanted())
        return false;
    for (int a = 0; a < 2; a++) {
        if (w->size[a] != 3 || w->stride[a] != 1 || w->dilation[a] != 1)
            return false;
        ret->in[a] = turned ? w->out[a] : w->in[a];
        ret->out[a] = turned ? w->in[a] : w->out[a];
        ret->before[a] = turned ? 2 - w->before[a] : w->before[a];
        ret->tiles[a] = (ret->out[a] + CORE - 1) / CORE;
    }
    ret->batch = c->batch;
    ret->count = c->batch * ret->tiles[0] * ret->tiles[1];
    return true;
}

/* Share of the tiles' area that is output. */
static inline double winograd_filled(const winograd_grid *g)
{
    return (double)(g->out[0] * g->out[1]) / (double)(g->tiles[0] * g->tiles[1] * CORE * CORE);
}

/* Where a tile stands. */
typedef struct winograd_place {
    int64_t image, row, column; /* of its first output */
} winograd_place;

static inline winograd_place winograd_place_of(const winograd_grid *g, int64_t tile)
{
    int64_t each = g->tiles[0] * g->tiles[1];
    return (winograd_place){tile / each, tile % each / g->tiles[1] * CORE,
                            tile % g->tiles[1] * CORE};
}

/* The pixels of an input tile; those outside are `zeros`. */
static inline void winograd_patch(const winograd_grid *g, winograd_place place, int64_t channels,
                                  const float *x, const float *zeros, const float *at[PATCH][PATCH])
{
    for (int64_t i = 0; i < PATCH; i++)
        VEC_UNROLL for (int64_t j = 0; j < PATCH; j++)
        {
            int64_t row = place.row - g->before[0] + i, column = place.column - g->before[1] + j;
            bool inside = row >= 0 && row < g->in[0] && column >= 0 && column < g->in[1];
            at[i][j] = inside ? x + ((place.image * g->in[0] + row) * g->in[1] + column) * channels
                              : zeros;
        }
}

/* VEC_LANES channels, or the `some` last ones, of B' d B. */
VEC_INLINE void winograd_input_lanes(const float *at[PATCH][PATCH], int64_t c, int64_t some,
                                     float *to, int64_t point)
{
    vec half[PATCH][PATCH], d[PATCH], t[PATCH];
    VEC_UNROLL for (int j = 0; j < PATCH; j++)
    {
        VEC_UNROLL for (int i = 0; i < PATCH; i++) d[i] =
            some ? load_some(at[i][j] + c, some) : vec_load(at[i][j] + c);
        transform_input(d, t);
        VEC_UNROLL for (int i = 0; i < PATCH; i++) half[i][j] = t[i];
    }
    VEC_UNROLL for (int i = 0; i < PATCH; i++)
    {
        transform_input(half[i], t);
        VEC_UNROLL for (int j = 0; j < PATCH; j++)
            vec_store(to + (i * PATCH + j) * point + c, t[j]);
    }
}

/* B' d B of one tile: element (point, channel) goes to to[point * step + channel]; channels are
 * filled up to a multiple of VEC_LANES with zeros. */
static inline void winograd_input(const winograd_grid *g, int64_t tile, int64_t channels,
                                  const float *x, const float *zeros, float *to, int64_t point)
{
    const float *at[PATCH][PATCH];
    winograd_patch(g, winograd_place_of(g, tile), channels, x, zeros, at);
    int64_t c = 0;
    for (; c + VEC_LANES <= channels; c += VEC_LANES)
        winograd_input_lanes(at, c, 0, to, point);
    if (c < channels)
        winograd_input_lanes(at, c, channels - c, to, point);
}

#endif
