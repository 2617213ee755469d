/* planes.h: convolution to few filters, for files compiled once for each instruction set: pixels of
 * a row fill the registers, which the filters would not.
 *
 * Input lies in planes [image][row][channel][pitch], padded by zeros; along a row the stride is 1.
 * A tile is up to PLANE_FILTERS filters times up to PLANE_VECTORS registers of pixels. Weights are
 * [groups of filters][taps][PLANE_FILTERS], taps in the order rows, channels, columns. Every output
 * is one sum in the same order whatever stands beside it: rows are invariant. */
#ifndef TUTTI_DEVICE_CPU_CONV_PLANES_H
#define TUTTI_DEVICE_CPU_CONV_PLANES_H

#include <string.h>

#include "device/cpu/conv/windows.h"
#include "device/cpu/vector.h"

#if VEC_NEON
enum { PLANE_VECTORS = 7, PLANE_FILTERS = 4 };
#elif VEC_LANES == 16
enum { PLANE_VECTORS = 2, PLANE_FILTERS = 8 };
#else
enum { PLANE_VECTORS = 3, PLANE_FILTERS = 4 };
#endif
enum { PLANE_MOST = 8, PLANE_LEAST_WIDTH = 8, PLANE_PIXELS = PLANE_VECTORS * VEC_LANES };

typedef struct plane_walk {
    tutti_convolution shape;
    int64_t rows, pitch;     /* of padded input; pixels from one plane's row to the next */
    int64_t groups, each;    /* of filters; filters in each but the last */
    int64_t taps;            /* of a window */
    int64_t planes, weights; /* floats, each a multiple of 16 */
} plane_walk;

/* Whether few filters and many pixels make it worth while, and its sizes. */
static inline bool plane_walk_make(const tutti_convolution *c, plane_walk *ret)
{
    const tutti_windows *w = &c->windows;
    int64_t width = (w->out[1] + VEC_LANES - 1) / VEC_LANES * VEC_LANES;
    *ret =
        (plane_walk){.shape = *c,
                     .rows = (w->out[0] - 1) * w->stride[0] + (w->size[0] - 1) * w->dilation[0] + 1,
                     .pitch = width + (w->size[1] - 1) * w->dilation[1],
                     .groups = (c->cout + PLANE_FILTERS - 1) / PLANE_FILTERS,
                     .taps = w->size[0] * w->size[1] * c->cin};
    ret->each = (c->cout + ret->groups - 1) / ret->groups;
    ret->planes = (c->batch * ret->rows * c->cin * ret->pitch + 15) / 16 * 16;
    ret->weights = (ret->groups * ret->taps * PLANE_FILTERS + 15) / 16 * 16;
    return w->stride[1] == 1 && c->cin <= 4 && c->cout <= PLANE_MOST && c->cout % VEC_LANES != 0 &&
           4 * w->out[1] >= 3 * width && w->out[1] >= PLANE_LEAST_WIDTH;
}

typedef struct plane_work {
    const plane_walk *walk;
    const float *x, *kernel, *bias;
    float *planes, *weights;
} plane_work;

/* Piece: an image into its planes. */
static void plane_piece(void *context, int64_t image)
{
    const plane_work *w = context;
    const plane_walk *p = w->walk;
    const tutti_windows *windows = &p->shape.windows;
    const int64_t channels = p->shape.cin, before = windows->before[1];
    const float *from = w->x + image * windows->in[0] * windows->in[1] * channels;
    float *to = w->planes + image * p->rows * channels * p->pitch;
    int64_t count = p->pitch - before < windows->in[1] ? p->pitch - before : windows->in[1];
    for (int64_t row = 0; row < p->rows; row++, to += channels * p->pitch) {
        int64_t h = row - windows->before[0];
        bool inside = h >= 0 && h < windows->in[0];
        if (!inside || count < p->pitch)
            memset(to, 0, (size_t)(channels * p->pitch) * sizeof *to);
        const float *line = from + h * windows->in[1] * channels;
        for (int64_t c = 0; inside && c < channels; c++)
            for (int64_t i = 0; i < count; i++)
                to[c * p->pitch + before + i] = line[i * channels + c];
    }
}

/* Kernel [rows][columns][channels][filters] into groups. */
static inline void plane_pack(const plane_work *w)
{
    const tutti_convolution *c = &w->walk->shape;
    const int64_t *size = c->windows.size;
    float *to = w->weights;
    for (int64_t g = 0; g < c->cout; g += w->walk->each)
        for (int64_t i = 0; i < size[0]; i++)
            for (int64_t channel = 0; channel < c->cin; channel++)
                for (int64_t j = 0; j < size[1]; j++, to += PLANE_FILTERS) {
                    const float *from =
                        w->kernel + ((i * size[1] + j) * c->cin + channel) * c->cout + g;
                    for (int64_t f = 0; f < PLANE_FILTERS; f++)
                        to[f] = f < w->walk->each && g + f < c->cout ? from[f] : 0;
                }
}

/* sums[filters][PLANE_PIXELS] of pixels whose first window begins at x. */
VEC_INLINE void plane_tile(int filters, int vectors, const plane_walk *p, const float *x,
                           const float *weights, float *sums)
{
    const tutti_windows *windows = &p->shape.windows;
    vec sum[PLANE_FILTERS][PLANE_VECTORS];
    VEC_UNROLL for (int f = 0; f < filters; f++) VEC_UNROLL for (int v = 0; v < vectors; v++)
        sum[f][v] = vec_splat(0);
    for (int64_t i = 0; i < windows->size[0]; i++)
        for (int64_t c = 0; c < p->shape.cin; c++) {
            const float *at = x + (i * windows->dilation[0] * p->shape.cin + c) * p->pitch;
            for (int64_t j = 0; j < windows->size[1]; j++) {
#if VEC_NEON
                const vec four = vec_load(weights);
#endif
                VEC_UNROLL for (int v = 0; v < vectors; v++)
                {
                    const vec pixels = vec_load(at + v * VEC_LANES);
#if VEC_NEON
                    sum[0][v] = vfmaq_laneq_f32(sum[0][v], pixels, four, 0);
                    if (filters > 1)
                        sum[1][v] = vfmaq_laneq_f32(sum[1][v], pixels, four, 1);
                    if (filters > 2)
                        sum[2][v] = vfmaq_laneq_f32(sum[2][v], pixels, four, 2);
                    if (filters > 3)
                        sum[3][v] = vfmaq_laneq_f32(sum[3][v], pixels, four, 3);
#else
                    VEC_UNROLL for (int f = 0; f < filters; f++) sum[f][v] =
                        vec_fma(pixels, vec_splat(weights[f]), sum[f][v]);
#endif
                }
                at += windows->dilation[1];
                weights += PLANE_FILTERS;
            }
        }
    VEC_UNROLL for (int f = 0; f < filters; f++) VEC_UNROLL for (int v = 0; v < vectors; v++)
        vec_store(sums + f * PLANE_PIXELS + v * VEC_LANES, sum[f][v]);
}

typedef void plane_function(const plane_walk *p, const float *x, const float *weights, float *sums);
#define PLANE_TILE(filters, vectors)                                                               \
    static void plane_tile_##filters##_##vectors(const plane_walk *p, const float *x,              \
                                                 const float *weights, float *sums)                \
    {                                                                                              \
        plane_tile(filters, vectors, p, x, weights, sums);                                         \
    }
#define PLANE_TILES(vectors)                                                                       \
    PLANE_TILE(1, vectors)                                                                         \
    PLANE_TILE(2, vectors)                                                                         \
    PLANE_TILE(3, vectors)                                                                         \
    PLANE_TILE(4, vectors)
#define PLANE_ROW(vectors)                                                                         \
    plane_tile_1_##vectors, plane_tile_2_##vectors, plane_tile_3_##vectors, plane_tile_4_##vectors
PLANE_TILES(1)
PLANE_TILES(2)
#if VEC_LANES == 16
#define PLANE_MORE_TILES(vectors)                                                                  \
    PLANE_TILE(5, vectors)                                                                         \
    PLANE_TILE(6, vectors)                                                                         \
    PLANE_TILE(7, vectors)                                                                         \
    PLANE_TILE(8, vectors)
#define PLANE_MORE(vectors)                                                                        \
    plane_tile_5_##vectors, plane_tile_6_##vectors, plane_tile_7_##vectors, plane_tile_8_##vectors
PLANE_MORE_TILES(1)
PLANE_MORE_TILES(2)
#else
PLANE_TILES(3)
#endif
#if VEC_NEON
PLANE_TILES(4)
PLANE_TILES(5)
PLANE_TILES(6)
PLANE_TILES(7)
#endif
static plane_function *const plane_functions[PLANE_VECTORS][PLANE_FILTERS] = {
#if VEC_LANES == 16
    {PLANE_ROW(1), PLANE_MORE(1)},
    {PLANE_ROW(2), PLANE_MORE(2)},
#else
    {PLANE_ROW(1)},
    {PLANE_ROW(2)},
    {PLANE_ROW(3)},
#endif
#if VEC_NEON
    {PLANE_ROW(4)},
    {PLANE_ROW(5)},
    {PLANE_ROW(6)},
    {PLANE_ROW(7)},
#endif
};

/* relu(sum + bias); a NaN stays one. */
static inline quad plane_relu(quad sum, quad bias)
{
    typedef int32_t quad_mask __attribute__((vector_size(16)));
    sum = sum + bias;
    return (quad)((quad_mask)sum & ~(quad_mask)(sum < (quad){0}));
}

/* y[pixel][filters] from sums[filters][PLANE_PIXELS]. What is stored past the filters of a pixel is
 * stored again by the next one; `last`: none follows, and nothing past it is touched. */
static inline void plane_finish(const float *sums, const quad *bias, int64_t filters,
                                int64_t pixels, bool last, float *y)
{
    for (int64_t i = 0; i < pixels; i += 4) {
        quad pixel[2][4];
        for (int half = 0; half < 2; half++) {
            for (int f = 0; f < 4; f++)
                pixel[half][f] =
                    *(const quad_unaligned *)(sums + (4 * half + f) * PLANE_PIXELS + i);
            quad_transpose(&pixel[half][0], &pixel[half][1], &pixel[half][2], &pixel[half][3]);
        }
        for (int n = 0; n < 4 && i + n < pixels; n++, y += filters) {
            float all[PLANE_MOST];
            bool exact = last && i + n + 2 >= pixels; /* two: of few filters 8 reach far */
            float *to = exact || filters < 4 ? all : y;
            *(quad_unaligned *)to = plane_relu(pixel[0][n], bias[0]);
            *(quad_unaligned *)(to + 4) = plane_relu(pixel[1][n], bias[1]);
            if (to == all)
                memcpy(y, all, (size_t)filters * sizeof *y);
        }
    }
}

/* One row of relu(conv2d(x, kernel) + bias). */
static inline void plane_row(const plane_work *w, int64_t image, int64_t row, float *y)
{
    const plane_walk *p = w->walk;
    const int64_t width = p->shape.windows.out[1], filters = p->shape.cout;
    const float *x =
        w->planes + (image * p->rows + row * p->shape.windows.stride[0]) * p->shape.cin * p->pitch;
    float sums[PLANE_MOST * PLANE_PIXELS] = {0};
    quad bias[2] = {{0}};
    memcpy(bias, w->bias, (size_t)filters * sizeof(float));
    for (int64_t at = 0; at < width; at += PLANE_PIXELS) {
        int64_t pixels = width - at < PLANE_PIXELS ? width - at : PLANE_PIXELS,
                vectors = (pixels + VEC_LANES - 1) / VEC_LANES;
        for (int64_t g = 0; g < p->groups; g++) {
            int64_t first = g * p->each, left = filters - first;
            plane_functions[vectors - 1][(left < p->each ? left : p->each) - 1](
                p, x + at, w->weights + g * p->taps * PLANE_FILTERS, sums + first * PLANE_PIXELS);
        }
        plane_finish(sums, bias, filters, pixels, at + PLANE_PIXELS >= width, y + at * filters);
    }
}

#endif
