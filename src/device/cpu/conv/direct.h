/* direct.h: direct convolution in tiles of pixels and filters, for files compiled once for each
 * instruction set.
 *
 * A tile is TILE_PIXELS outputs of one row times TILE_FILTERS filters, held in registers while the
 * window is walked. Weights lie in panels [taps][TILE_FILTERS], the last panel filled up with
 * zeros. Input is padded beforehand where the window reaches outside, so that the inner loop has no
 * bounds. Every output is one sum in the same order whatever stands beside it: rows are invariant.
 */
#ifndef TUTTI_DEVICE_CPU_CONV_DIRECT_H
#define TUTTI_DEVICE_CPU_CONV_DIRECT_H

#include <stdlib.h>
#include <string.h>

#include "device/cpu/conv/shape.h"
#include "device/cpu/vector.h"

#if VEC_LANES == 16
#define TILE_PIXELS 12
#define TILE_VECTORS 2
#elif VEC_LANES == 8
#define TILE_PIXELS 6
#define TILE_VECTORS 2
#else
#define TILE_PIXELS 6
#define TILE_VECTORS 4
#endif
#define TILE_FILTERS (TILE_VECTORS * VEC_LANES)

static inline int64_t panel_count(int64_t filters)
{
    return (filters + TILE_FILTERS - 1) / TILE_FILTERS;
}

/* Walks the window for `pixels` neighbouring outputs of one row. */
static inline __attribute__((always_inline)) void walk_window(int pixels,
                                                              const tutti_direct_conv *c,
                                                              const float *x, const float *panel,
                                                              vec acc[TILE_PIXELS][TILE_VECTORS])
{
    for (int p = 0; p < pixels; p++)
        for (int v = 0; v < TILE_VECTORS; v++)
            acc[p][v] = vec_splat(0);
    for (int64_t i = 0; i < c->size[0]; i++)
        for (int64_t run = 0; run < c->runs; run++) {
            const float *a = x + i * c->dilation[0] * c->row + run * c->run_step;
            for (int64_t k = 0; k < c->run_length; k++, panel += TILE_FILTERS) {
                vec w[TILE_VECTORS];
                for (int v = 0; v < TILE_VECTORS; v++)
                    w[v] = vec_load(panel + v * VEC_LANES);
                for (int p = 0; p < pixels; p++) {
                    vec s = vec_splat(a[p * c->pixel + k]);
                    for (int v = 0; v < TILE_VECTORS; v++)
                        acc[p][v] = vec_fma(s, w[v], acc[p][v]);
                }
            }
        }
}

static inline void store_pixel(float *y, const vec *acc, int64_t filters)
{
    if (filters >= TILE_FILTERS) {
        for (int v = 0; v < TILE_VECTORS; v++)
            vec_store(y + v * VEC_LANES, acc[v]);
        return;
    }
    float all[TILE_FILTERS];
    for (int v = 0; v < TILE_VECTORS; v++)
        vec_store(all + v * VEC_LANES, acc[v]);
    memcpy(y, all, (size_t)filters * sizeof *y);
}

/* One output row of one panel. The last tile moves back so that it ends with the row: some outputs
 * are computed twice, to the same bits. */
static inline void convolve_row(const tutti_direct_conv *c, const float *x, const float *panel,
                                float *y, int64_t filters)
{
    vec acc[TILE_PIXELS][TILE_VECTORS];
    int64_t width = c->out[1];
    if (width < TILE_PIXELS) {
        for (int64_t p = 0; p < width; p++) {
            walk_window(1, c, x + p * c->pixel, panel, acc);
            store_pixel(y + p * c->filters, acc[0], filters);
        }
        return;
    }
    for (int64_t at = 0; at < width; at += TILE_PIXELS) {
        int64_t first = at + TILE_PIXELS > width ? width - TILE_PIXELS : at;
        walk_window(TILE_PIXELS, c, x + first * c->pixel, panel, acc);
        for (int p = 0; p < TILE_PIXELS; p++)
            store_pixel(y + (first + p) * c->filters, acc[p], filters);
    }
}

typedef struct convolve_work {
    const tutti_direct_conv *shape;
    const float *x, *panels;
    float *y;
    int64_t blocks; /* of rows, per image */
} convolve_work;

#define BLOCK_ROWS 4

/* Piece: one image's block of rows, all panels. */
static inline void convolve_piece(void *context, int64_t piece)
{
    const convolve_work *w = context;
    const tutti_direct_conv *c = w->shape;
    int64_t image = piece / w->blocks, first = piece % w->blocks * BLOCK_ROWS;
    int64_t end = first + BLOCK_ROWS < c->out[0] ? first + BLOCK_ROWS : c->out[0];
    const float *x = w->x + image * c->image;
    float *y = w->y + image * c->out[0] * c->out[1] * c->filters;
    for (int64_t p = 0; p < panel_count(c->filters); p++) {
        const float *panel = w->panels + p * c->taps * TILE_FILTERS;
        int64_t filters = c->filters - p * TILE_FILTERS;
        for (int64_t row = first; row < end; row++)
            convolve_row(c, x + row * c->stride[0] * c->row, panel,
                         y + row * c->out[1] * c->filters + p * TILE_FILTERS, filters);
    }
}

static inline void convolve(const tutti_call *call, const tutti_direct_conv *c, const float *x,
                            const float *panels, float *y)
{
    convolve_work work = {c, x, panels, y, (c->out[0] + BLOCK_ROWS - 1) / BLOCK_ROWS};
    tutti_parallel(call, c->batch * work.blocks, convolve_piece, &work);
}

/* Room for panels of `taps` by `filters`, in floats. */
static inline int64_t panels_size(int64_t taps, int64_t filters)
{
    return panel_count(filters) * TILE_FILTERS * taps;
}

/* What the kernels that run `convolve` keep: geometry, and how the workspace is cut. */
typedef struct direct_plan {
    tutti_direct_conv shape;
    tutti_conv_padding padding;
    int64_t padded; /* floats of padded input before the panels, a multiple of 16 */
} direct_plan;

typedef void direct_geometry(const tutti_convolution *c, tutti_direct_conv *ret,
                             tutti_conv_padding *ret_padding);

/* x, kernel, y: which input each is, -1 for the output. False where these kernels do not apply. */
static inline bool direct_plan_make(const tutti_kernel_query *query, int x, int kernel, int y,
                                    direct_geometry *geometry, direct_plan *ret)
{
    tutti_convolution c;
    if (!tutti__conv_query(query, x, kernel, y, &c))
        return false;
    geometry(&c, &ret->shape, &ret->padding);
    ret->padded = (tutti__conv_padded_size(&ret->shape, &ret->padding) + 15) / 16 * 16;
    return true;
}

static inline size_t direct_plan_workspace(const direct_plan *p)
{
    return (size_t)(p->padded + panels_size(p->shape.taps, p->shape.filters)) * sizeof(float);
}

static inline tutti_status direct_plan_keep(const direct_plan *p, void **ret_plan)
{
    direct_plan *kept = malloc(sizeof *kept);
    if (!kept)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    *kept = *p;
    *ret_plan = kept;
    return TUTTI_OK;
}

/* Pads x, lets `pack` fill the panels, convolves. */
static inline tutti_status direct_run(const tutti_call *call, const float *x, const float *kernel,
                                      void (*pack)(const tutti_direct_conv *c, const float *kernel,
                                                   float *panels))
{
    const direct_plan *p = call->plan;
    float *padded = call->workspace, *panels = padded + p->padded;
    const float *input = tutti__conv_pad(call, &p->shape, &p->padding, x, padded);
    pack(&p->shape, kernel, panels);
    convolve(call, &p->shape, input, panels, call->outputs[0].data);
    return TUTTI_OK;
}

#endif
