/* direct.h: direct convolution in tiles of pixels and filters, for files compiled once for each
 * instruction set.
 *
 * A tile is PIXELS outputs, wherever they stand, times PANEL filters, held in registers while the
 * window is walked. Weights lie in panels [taps][PANEL] for each phase, the last filled up with
 * zeros. Input is padded beforehand where the window reaches outside, so that the inner loop has no
 * bounds. Every output is one sum in the same order whatever stands beside it: rows are invariant.
 */
#ifndef TUTTI_DEVICE_CPU_CONV_DIRECT_H
#define TUTTI_DEVICE_CPU_CONV_DIRECT_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/conv/walk.h"
#include "device/cpu/vector.h"

#if defined(__AVX512F__) || defined(__aarch64__)
enum { PIXELS = 8, VECTORS = 2 };
#elif defined(__AVX2__)
enum { PIXELS = 6, VECTORS = 2 };
#else
enum { PIXELS = 4, VECTORS = 2 };
#endif
enum { PANEL = VECTORS * VEC_LANES, BLOCK = 8 * PIXELS };
#define PIECE_FLOPS (1 << 19)

typedef struct direct_work {
    const tutti_conv_walk *walk;
    const float *x, *kernel, *bias; /* bias NULL: none */
    float *panels, *y;
    bool backward, relu;
    const tutti_conv_phase *phase; /* at hand */
    int64_t blocks;                /* of BLOCK outputs, in one piece */
} direct_work;

static inline int64_t panel_count(int64_t filters)
{
    return (filters + PANEL - 1) / PANEL;
}

/* Room for all panels, in floats. */
static inline int64_t direct_panel_floats(const tutti_conv_walk *w)
{
    return panel_count(w->filters) * PANEL * w->cells * w->channels;
}

/* Where the panels of a phase begin, and the floats of one of them. */
static inline float *phase_panels(const direct_work *w, const tutti_conv_phase *phase)
{
    return w->panels +
           phase->first_cell * w->walk->channels * panel_count(w->walk->filters) * PANEL;
}

/* Forward: kernel [cell][channels][filters]. Lines of PANEL filters are copied. */
static inline void pack_forward(const tutti_conv_walk *w, const float *from, int64_t first,
                                int64_t count, float *to)
{
    for (int64_t c = 0; c < w->channels; c++, to += PANEL) {
        memcpy(to, from + c * w->filters + first, (size_t)count * sizeof *to);
        memset(to + count, 0, (size_t)(PANEL - count) * sizeof *to);
    }
}

/* Backward: kernel [cell][filters][channels]. */
static inline void pack_backward(const tutti_conv_walk *w, const float *from, int64_t first,
                                 int64_t count, float *to)
{
    for (int64_t f = 0; f < PANEL; f++)
        for (int64_t c = 0; c < w->channels; c++)
            to[c * PANEL + f] = f < count ? from[(first + f) * w->channels + c] : 0;
}

/* Piece: one panel of every phase. */
static void pack_piece(void *context, int64_t panel)
{
    const direct_work *w = context;
    const tutti_conv_walk *walk = w->walk;
    int64_t first = panel * PANEL, left = walk->filters - first,
            count = left < PANEL ? left : PANEL;
    for (int64_t p = 0; p < walk->phases; p++) {
        const tutti_conv_phase *phase = &walk->phase[p];
        float *to = phase_panels(w, phase) + panel * phase->cells * walk->channels * PANEL;
        for (int64_t i = 0; i < phase->cells; i++, to += walk->channels * PANEL) {
            const float *from = w->kernel + phase->cell[i] * walk->channels * walk->filters;
            (w->backward ? pack_backward : pack_forward)(walk, from, first, count, to);
        }
    }
}

/* One tap of the window: acc[p] += scalar of pixel p * a line of the panel. */
#define DIRECT_LINE(w, at)                                                                         \
    vec line[VECTORS];                                                                             \
    VEC_UNROLL for (int v = 0; v < vectors; v++) line[v] =                                         \
        vec_load((w) + (at)*PANEL + v * VEC_LANES)

#if defined(__aarch64__)
/* Four taps: the multiply-add takes one lane of a register as its scalar. */
#define DIRECT_LANE(lane)                                                                          \
    do {                                                                                           \
        DIRECT_LINE(w, lane);                                                                      \
        VEC_UNROLL for (int p = 0; p < PIXELS; p++) VEC_UNROLL for (int v = 0; v < vectors; v++)   \
            acc[p][v] = vfmaq_laneq_f32(acc[p][v], line[v], four[p], lane);                        \
    } while (0)
#endif

/* What becomes of a sum: the greater of sum + bias and `low`, which is 0 for relu and else below
 * all. A NaN stays one. */
typedef struct finish {
    vec bias[VECTORS];
    float low;
} finish;

/* The window of PIXELS outputs, whose inputs are at x, times one panel, of which the first
 * `vectors` registers count, and `lanes` of the last of these; output p goes to y[p] + f. */
VEC_INLINE void walk_window(int vectors, const tutti_conv_phase *phase, const float *const *x,
                            const float *w, const finish *end, float *const *y, int64_t f,
                            int64_t lanes)
{
    vec acc[PIXELS][VECTORS];
    VEC_UNROLL for (int p = 0; p < PIXELS; p++) VEC_UNROLL for (int v = 0; v < vectors; v++)
        acc[p][v] = vec_splat(0);
    for (int64_t run = 0; run < phase->runs; run++) {
        const float *at[PIXELS];
        int64_t k = 0, length = phase->length;
        VEC_UNROLL for (int p = 0; p < PIXELS; p++) at[p] = x[p] + phase->offset[run];
#if defined(__aarch64__)
        for (; k + 4 <= length; k += 4, w += 4 * PANEL) {
            vec four[PIXELS];
            VEC_UNROLL for (int p = 0; p < PIXELS; p++) four[p] = vec_load(at[p] + k);
            DIRECT_LANE(0);
            DIRECT_LANE(1);
            DIRECT_LANE(2);
            DIRECT_LANE(3);
        }
#endif
        for (; k < length; k++, w += PANEL) {
            DIRECT_LINE(w, 0);
            VEC_UNROLL for (int p = 0; p < PIXELS; p++)
            {
                vec scalar = vec_splat(at[p][k]);
                VEC_UNROLL for (int v = 0; v < vectors; v++) acc[p][v] =
                    vec_fma(line[v], scalar, acc[p][v]);
            }
        }
    }
    VEC_UNROLL for (int p = 0; p < PIXELS; p++) VEC_UNROLL for (int v = 0; v < vectors; v++)
        vec_store_lanes(y[p] + f + v * VEC_LANES, vec_at_least(acc[p][v] + end->bias[v], end->low),
                        v + 1 < vectors ? VEC_LANES : lanes);
}

typedef void walk_function(const tutti_conv_phase *phase, const float *const *x, const float *w,
                           const finish *end, float *const *y, int64_t f, int64_t left);

static void walk_wide(const tutti_conv_phase *phase, const float *const *x, const float *w,
                      const finish *end, float *const *y, int64_t f, int64_t left)
{
    (void)left;
    walk_window(VECTORS, phase, x, w, end, y, f, VEC_LANES);
}

static void walk_narrow(const tutti_conv_phase *phase, const float *const *x, const float *w,
                        const finish *end, float *const *y, int64_t f, int64_t left)
{
    (void)left;
    walk_window(1, phase, x, w, end, y, f, VEC_LANES);
}

/* One panel with `left` filters that do not fill its registers. */
#if VEC_MASKED
static void walk_wide_edge(const tutti_conv_phase *phase, const float *const *x, const float *w,
                           const finish *end, float *const *y, int64_t f, int64_t left)
{
    walk_window(VECTORS, phase, x, w, end, y, f, left - (VECTORS - 1) * VEC_LANES);
}

static void walk_narrow_edge(const tutti_conv_phase *phase, const float *const *x, const float *w,
                             const finish *end, float *const *y, int64_t f, int64_t left)
{
    walk_window(1, phase, x, w, end, y, f, left);
}

static void walk_edge(const tutti_conv_phase *phase, const float *const *x, const float *w,
                      const finish *end, float *const *y, int64_t f, int64_t left)
{
    (left > VEC_LANES ? walk_wide_edge : walk_narrow_edge)(phase, x, w, end, y, f, left);
}
#else /* through memory beside */
static void walk_edge(const tutti_conv_phase *phase, const float *const *x, const float *w,
                      const finish *end, float *const *y, int64_t f, int64_t left)
{
    float whole[PIXELS][PANEL], *to[PIXELS];
    VEC_UNROLL for (int p = 0; p < PIXELS; p++) to[p] = whole[p];
    (left > VEC_LANES ? walk_wide : walk_narrow)(phase, x, w, end, to, 0, left);
    VEC_UNROLL for (int p = 0; p < PIXELS; p++) for (int64_t i = 0; i < left; i++) y[p][f + i] =
        whole[p][i];
}
#endif

static inline finish finish_of(const float *bias, bool relu, int64_t left)
{
    finish f = {.low = relu ? 0 : -INFINITY};
    float some[PANEL] = {0};
    if (bias != NULL)
        memcpy(some, bias, (size_t)left * sizeof *some);
    VEC_UNROLL for (int v = 0; v < VECTORS; v++) f.bias[v] = vec_load(some + v * VEC_LANES);
    return f;
}

/* `count` outputs, all filters: `x` their inputs and `y` their places, both filled up to a multiple
 * of PIXELS with any of them. */
static inline void convolve_block(const direct_work *w, const float *const *x, float *const *y,
                                  int64_t count)
{
    const tutti_conv_phase *phase = w->phase;
    int64_t filters = w->walk->filters, size = phase->cells * w->walk->channels * PANEL;
    const float *panel = phase_panels(w, phase);
    for (int64_t f = 0; f < filters; f += PANEL, panel += size) {
        int64_t left = filters - f < PANEL ? filters - f : PANEL;
        finish end = finish_of(w->bias == NULL ? NULL : w->bias + f, w->relu, left);
        walk_function *walk = left == PANEL       ? walk_wide
                              : left == VEC_LANES ? walk_narrow
                                                  : walk_edge;
        for (int64_t p = 0; p < count; p += PIXELS)
            walk(phase, x + p, panel, &end, y + p, f, left);
    }
}

/* Outputs first .. first + count of a phase, counted through all images. */
static inline void convolve_outputs(const direct_work *w, int64_t first, int64_t count)
{
    const tutti_conv_walk *walk = w->walk;
    const tutti_conv_phase *phase = w->phase;
    const float *x[BLOCK];
    float *y[BLOCK];
    int64_t column = first % phase->count[1], rows = first / phase->count[1],
            row = rows % phase->count[0], image = rows / phase->count[0];
    for (int64_t i = 0; i < count; i++) {
        x[i] = w->x + image * walk->image + phase->base + row * phase->row + column * phase->column;
        y[i] =
            w->y + ((image * walk->out[0] + phase->first[0] + row * phase->step[0]) * walk->out[1] +
                    phase->first[1] + column * phase->step[1]) *
                       walk->filters;
        if (++column == phase->count[1]) {
            column = 0;
            row = row + 1 == phase->count[0] ? 0 : row + 1;
            image += row == 0;
        }
    }
    for (int64_t i = count; i % PIXELS != 0; i++) {
        x[i] = x[0];
        y[i] = y[0];
    }
    convolve_block(w, x, y, count);
}

static void convolve_piece(void *context, int64_t piece)
{
    const direct_work *w = context;
    int64_t all = w->walk->batch * w->phase->count[0] * w->phase->count[1],
            first = piece * w->blocks * BLOCK, end = first + w->blocks * BLOCK;
    end = end < all ? end : all;
    for (; first < end; first += BLOCK)
        convolve_outputs(w, first, end - first < BLOCK ? end - first : BLOCK);
}

/* Pads x, packs the kernel, convolves. The workspace holds padded input, then panels. */
static inline void direct_run(const tutti_call *call, const tutti_conv_walk *walk, direct_work *w)
{
    float *padded = call->workspace;
    w->walk = walk;
    w->panels = padded + walk->padded;
    w->x = tutti__conv_pad(call, walk, w->x, padded);
    tutti_parallel(call, panel_count(walk->filters), pack_piece, w);
    for (int64_t p = 0; p < walk->phases; p++) {
        w->phase = &walk->phase[p];
        int64_t outputs = walk->batch * w->phase->count[0] * w->phase->count[1];
        int64_t flops = 2 * BLOCK * (w->phase->cells * walk->channels + 8) * walk->filters;
        w->blocks = PIECE_FLOPS / flops + 1;
        int64_t piece = w->blocks * BLOCK;
        tutti_parallel(call, (outputs + piece - 1) / piece, convolve_piece, w);
    }
}

static inline size_t direct_workspace(const tutti_conv_walk *w)
{
    return (size_t)(w->padded + direct_panel_floats(w)) * sizeof(float);
}

#endif
