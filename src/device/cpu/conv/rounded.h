/* rounded.h: convolutions by products of bf16 that are summed in f32, forward and turned round, for
 * nodes whose attribute `products` is "bf16".
 *
 * The image is rounded once and laid out as the tiles of products take their rows (gemm/tile.h): in
 * planes of `pad` channels, position after position, a row of the image `pitch` positions after the
 * one before. An output takes, for each tap of the kernel, the input a fixed distance from its own
 * position. So neighbouring positions are neighbouring rows of a product, taps are places in the
 * planes, and no patch is ever copied:
 *     y[u] = sum over taps t of plane[u + d(t)] kernel[t]
 * Zeros stand between the rows, shared by the right edge of one and the left of the next; sums at
 * these positions are dropped.
 *
 * Forward with a stride there are planes for each remainder of the position by the stride. Of the
 * gradient of x the outputs are cut into such phases instead (windows.h), so that no zeros are
 * multiplied. */
#ifndef TUTTI_DEVICE_CPU_CONV_ROUNDED_H
#define TUTTI_DEVICE_CPU_CONV_ROUNDED_H

#include "device/cpu/conv/windows.h"
#include "device/cpu/count.h"
#include "device/cpu/gemm/products.h"

/* Outputs first + step * u, u < count along each axis, and the taps that they use. */
typedef struct tutti_rounded_phase {
    int64_t first[2], step[2], count[2];
    int64_t taps;
    const int64_t *cell; /* i * size[1] + j of each tap */
    const int32_t *at;   /* where the groups of channels of each tap begin, from those of u */
    int64_t first_tap;   /* of all phases together */
} tutti_rounded_phase;

typedef struct tutti_rounded_plan {
    const tutti_gemm_tile *tile;
    tutti_windows windows;
    bool turned;
    int64_t batch, channels, filters;
    int64_t in[2], out[2];
    int64_t apart[2];              /* from one row or column of a plane to the next, in the image */
    int64_t planes;                /* for each remainder by `apart` and group of channels */
    int64_t depth, width;          /* channels and filters, filled up */
    int64_t lowest[2], highest[2]; /* distances of taps */
    int64_t left, pitch, positions; /* of a plane: columns before the first, of a row, of all */
    int64_t high, blocks;           /* rows of outputs in a piece of work, pieces of an image */
    int64_t strip;                  /* rows of outputs that are summed at once */
    int threads;
    int64_t phases;
    tutti_rounded_phase *phase;
} tutti_rounded_plan;

/* Whether there are enough channels and filters, and the taps stand near enough to each other. */
bool tutti__rounded_fits(const tutti_convolution *c);

/* The plan's sizes, without its phases; false where it does not fit. */
bool tutti__rounded_sizes(const tutti_convolution *c, bool turned, int threads,
                          tutti_rounded_plan *ret);
size_t tutti__rounded_workspace(const tutti_rounded_plan *p);
/* One block of memory, for free(). */
tutti_status tutti__rounded_plan(const tutti_rounded_plan *sizes, tutti_rounded_plan **ret);

/* y = f(conv(x, kernel) + bias), f the identity or relu; bias may be NULL. */
typedef struct tutti_rounded_layer {
    const float *x, *kernel, *bias;
    float *y;
    bool relu;
} tutti_rounded_layer;
void tutti__rounded_run(const tutti_kernel_call *call, const tutti_rounded_plan *p,
                        tutti_rounded_layer layer);

/* A kernel that is such a convolution of one node and nothing else, for the set of instructions
 * `isa`: forward, or turned round for the gradient of the input. */
bool tutti__rounded_query(const tutti_kernel_query *query, const char *isa, bool turned,
                          tutti_rounded_plan *ret_sizes);
int tutti__rounded_score(const tutti_kernel_query *query, const char *isa, bool turned);
size_t tutti__rounded_needs(const tutti_kernel_query *query, const char *isa, bool turned);
tutti_status tutti__rounded_prepare(const tutti_kernel_query *query, const char *isa, bool turned,
                                    void **ret_plan);
tutti_status tutti__rounded_run_node(const tutti_kernel_call *call);

/* Distance d and remainder r of tap k from output u: input d * apart + r + u * apart; false: the
 * outputs of this remainder by the stride do not use it. */
bool tutti__rounded_tap(const tutti_windows *w, int axis, bool turned, int64_t k, int64_t remainder,
                        int64_t *ret_distance, int64_t *ret_remainder);

#endif
