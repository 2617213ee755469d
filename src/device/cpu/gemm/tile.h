/* tile.h: the inner parts of the plain matrix product, one set of them for each instruction set.
 *
 * A product C[m,n] = A[m,k] B[k,n] is cut along k into blocks of at most `depth`. A is packed into
 * panels of `rows` rows, B into panels of `wide` or `narrow` columns. In a panel the element
 * (p, i), p along k, stands at [p * width + i]; rows and columns past the end are zero.
 *
 * Every element of C is the sum over the blocks, in order, of the fused multiply-adds over a block,
 * in order, from zero. So it depends on its row of A and column of B only, not on where it stands.
 * tables: tutti_gemm_tile */
#ifndef TUTTI_DEVICE_CPU_GEMM_TILE_H
#define TUTTI_DEVICE_CPU_GEMM_TILE_H

#include "base/status.h"

typedef struct tutti_gemm_tile {
    const char *isa;
    int rows, wide, narrow, depth;

    /* Packs one panel: `count` <= width lines of k elements; element (p, i) is read at
     * source[p * step + i * stride]. */
    void (*pack)(int64_t width, int64_t count, int64_t k, const float *source, int64_t step,
                 int64_t stride, float *panel);

    /* C[m,n] = or += A B for one block of k <= depth: `a` packed panels of m rows, one after the
     * other, `b` one packed panel of `width` columns of which n <= width are used. */
    void (*multiply)(int64_t m, int64_t n, int64_t k, const float *a, const float *b, int64_t width,
                     float *c, int64_t ldc, bool add);
    /* (optional) The same with rows of A as they stand in memory, lda apart. */
    void (*multiply_rows)(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                          const float *b, int64_t width, float *c, int64_t ldc, bool add);
} tutti_gemm_tile;

/* The best one this CPU runs. */
const tutti_gemm_tile *tutti__gemm_tile(void);

/* How n columns are cut into panels: first `wides` wide ones, then `narrows` narrow ones, with the
 * fewest columns of padding. */
typedef struct tutti_gemm_panels {
    int64_t wides, narrows, padded; /* padded: columns of all panels together */
} tutti_gemm_panels;
tutti_gemm_panels tutti__gemm_panels(const tutti_gemm_tile *tile, int64_t n);

#endif
