/* kernel_sum.h: the gradient of the kernel, for files compiled once for each instruction set: for
 * every tap and filter a sum over all pixels.
 *
 * A tile is ROWS or ROWS + 1 taps times PANEL filters in registers while the pixels of some rows go
 * by. Rows are cut into chunks by shape; each chunk has a partial sum of its own, and these are
 * added over one binary tree. */
#ifndef TUTTI_DEVICE_CPU_CONV_KERNEL_SUM_H
#define TUTTI_DEVICE_CPU_CONV_KERNEL_SUM_H

#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/conv/windows.h"
#include "device/cpu/vector.h"

#if defined(__AVX512F__) || defined(__aarch64__)
enum { ROWS = 8, VECTORS = 2 };
#else
enum { ROWS = 4, VECTORS = 2 };
#endif
enum { PANEL = VECTORS * VEC_LANES, MOST_CHUNKS = 16, GRAD_FLOATS = 1 << 12 };
#define MOST_PARTIALS ((int64_t)4 << 20) /* floats */

typedef struct kernel_sum {
    tutti_conv_windows *walk; /* forward: one phase */
    int64_t taps, width;      /* width: filters, filled up to PANEL */
    int64_t lines;            /* of width floats in a partial sum: taps, and what else is summed */
    int64_t block, blocks;    /* output rows that go by at once; blocks in all */
    int64_t chunks;
    int64_t *offsets; /* of each tap in x */
} kernel_sum;

/* Everything but the walk and the offsets. Blocks are a multiple of `rows`. */
static inline void kernel_sum_make(const tutti_convolution *c, int64_t rows, int64_t more,
                                   kernel_sum *ret)
{
    const int64_t *out = c->windows.out;
    ret->taps = c->windows.size[0] * c->windows.size[1] * c->cin;
    ret->lines = ret->taps + more;
    ret->width = (c->cout + PANEL - 1) / PANEL * PANEL;
    int64_t block = GRAD_FLOATS / (rows * out[1] * c->cout) * rows;
    block = block > out[0] ? out[0] : block;
    ret->block = block < rows ? rows : block;
    ret->blocks = c->batch * ((out[0] + ret->block - 1) / ret->block);
    int64_t chunks = MOST_PARTIALS / (ret->lines * ret->width);
    chunks = chunks > MOST_CHUNKS ? MOST_CHUNKS : chunks;
    chunks = chunks > ret->blocks ? ret->blocks : chunks;
    ret->chunks = chunks < 1 ? 1 : chunks;
}

static inline int64_t kernel_sum_partials(const kernel_sum *p)
{
    return p->chunks * p->lines * p->width;
}

static inline void kernel_sum_free(kernel_sum *p)
{
    free(p->walk);
    free(p->offsets);
}

/* Blocks [first, end) of a chunk. */
static inline int64_t chunk_begin(const kernel_sum *p, int64_t chunk)
{
    return p->blocks * chunk / p->chunks;
}

/* Where a block stands. */
typedef struct block_place {
    int64_t image, row, rows;
} block_place;

static inline block_place block_at(const kernel_sum *p, int64_t block)
{
    int64_t each = p->blocks / p->walk->batch, row = block % each * p->block,
            left = p->walk->out[0] - row;
    return (block_place){block / each, row, left < p->block ? left : p->block};
}

/* The walk and the offsets. */
#define kernel_sum_prepare TUTTI_ISA_NAME(tutti__kernel_sum_prepare)
tutti_status kernel_sum_prepare(const tutti_convolution *c, kernel_sum *p);

/* A block's pixels go by, panel after panel: `grad` are its gradients, in memory that reaches to
 * `end`; `sums` [taps][width] of the chunk, added to or begun. */
#define kernel_sum_block TUTTI_ISA_NAME(tutti__kernel_sum_block)
void kernel_sum_block(const kernel_sum *p, block_place at, const float *x, const float *grad,
                      const float *end, float *sums, bool add);

/* Adds the partial sums and puts taps into `to`, the line after them into `more` (NULL: nowhere).
 */
#define kernel_sum_finish TUTTI_ISA_NAME(tutti__kernel_sum_finish)
void kernel_sum_finish(const tutti_kernel_call *call, const kernel_sum *p, float *partial,
                       float *to, float *more);

#endif
