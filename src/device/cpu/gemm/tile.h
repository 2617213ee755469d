/* tile.h: the inner parts of the plain matrix product, one set of them for each instruction set.
 *
 * A product C[m,n] = A[m,k] B[k,n] is cut along k into blocks of at most `depth`. A is packed into
 * panels of `rows` rows, B into panels of `wide` or `narrow` columns. In a panel the element
 * (p, i), p along k, stands at [p * width + i]; rows and columns past the end are zero.
 *
 * Tiles of bf16 multiply `group` elements along k at once: there (p, i) stands at
 * [(p / group * width + i) * group + p % group], and k is padded with zeros to a multiple of `pad`.
 *
 * Every element of C is the sum over the blocks, in order, of the fused multiply-adds over a block,
 * in order, from zero. So it depends on its row of A and column of B only, not on where it stands.
 * tables: tutti_gemm_tile */
#ifndef TUTTI_DEVICE_CPU_GEMM_TILE_H
#define TUTTI_DEVICE_CPU_GEMM_TILE_H

#include "base/status.h"

/* Lines to pack into one panel: `count` <= width of them, each of k elements; element (p, i) is
 * read at source[p * step + i * stride], step or stride being 1. */
typedef struct tutti_gemm_lines {
    int64_t width, count, k;
    const void *source;
    int64_t step, stride;
    bool bf16;    /* of the source, else f32 */
    bool columns; /* of B, else rows of A */
} tutti_gemm_lines;

/* `pixels` of f32, `stride` apart, of `count` numbers each, in `images` <= pad images, `apart`
 * apart. Those of one pixel are `pad` steps along k, of which the last ones, without an image, are
 * zeros, and the next pixel's follow: number i of image p of a pixel goes, in a panel of `width`,
 * where the head of this file says. */
typedef struct tutti_gemm_images {
    int64_t images, apart, pixels, stride, count, width;
    const float *source;
    bool columns; /* of B, else rows of A */
} tutti_gemm_images;

/* Finished sums on their way to C: to[rows, n] = f(from[rows, n] + bias[n]), f the identity or
 * relu. `from` may be `to`. */
typedef struct tutti_gemm_finish {
    int64_t rows, n;
    const float *from;
    int64_t ld;
    const void *bias; /* f32 or bf16; may be NULL */
    void *to;         /* f32 or bf16 */
    int64_t ldc;
    bool bias_bf16, relu, bf16;
} tutti_gemm_finish;

typedef struct tutti_gemm_tile {
    const char *isa;
    int rows, wide, narrow, depth;
    int element; /* bytes of a packed element: 4 of f32, 2 of bf16 */
    int pad;     /* depth is a multiple of it */

    /* Packs one panel of f32 from f32: `count` <= width lines of k elements; element (p, i) is read
     * at source[p * step + i * stride]. NULL in tiles of bf16. */
    void (*pack)(int64_t width, int64_t count, int64_t k, const float *source, int64_t step,
                 int64_t stride, float *panel);
    /* The same from any source into a panel of the tile's own elements. */
    void (*pack_lines)(const tutti_gemm_lines *lines, void *panel);

    /* C[m,n] = or += A B for one block of k <= depth: `a` packed panels of m rows, one after the
     * other, `b` one packed panel of `width` columns of which n <= width are used. */
    void (*multiply)(int64_t m, int64_t n, int64_t k, const void *a, const void *b, int64_t width,
                     float *c, int64_t ldc, bool add);
    /* (optional) The same with rows of A, of f32, as they stand in memory, lda apart. */
    void (*multiply_rows)(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                          const float *b, int64_t width, float *c, int64_t ldc, bool add);
    /* (optional) The same with A, of f32, as it stands when it is given turned: row i of it at
     * a[p * lda + i]. */
    void (*multiply_lines)(int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
                           const float *b, int64_t width, float *c, int64_t ldc, bool add);
    /* (optional) With packed rows, and all `width` columns of B, of f32, as they stand in memory,
     * lines of k ldb apart. */
    void (*multiply_columns)(int64_t m, int64_t k, const void *a, const float *b, int64_t ldb,
                             int64_t width, float *c, int64_t ldc, bool add);
    /* (optional) One row: c[n] = or += a[k] B for one block of k <= depth, lines of B, of f32, as
     * they stand in memory, ldb apart. Fastest for multiples of `row` columns. */
    void (*multiply_row)(int64_t n, int64_t k, const float *a, const float *b, int64_t ldb,
                         float *c, bool add);
    int row;
    void (*finish)(const tutti_gemm_finish *finish);

    /* (tiles of bf16) C[m, width] = or += A B, k a multiple of `pad`, where group q of k of row i
     * of A stands at a[at[q] + i * pad]. C has room for m rounded up to `rows`. */
    void (*multiply_at)(int64_t m, int64_t k, const void *a, const int32_t *at, const void *b,
                        int64_t width, float *c, int64_t ldc, bool add);
    /* (tiles of bf16) Such rows of A: `count` of f32, `stride` apart. Element p of row i goes to
     * to[(p / pad * width + i) * pad + p % pad]; the last group is filled up with zeros. */
    void (*pack_pixels)(int64_t count, int64_t channels, const float *from, int64_t stride,
                        int64_t width, uint16_t *to);
    /* (tiles of bf16) Rows of A or columns of B whose k are images. */
    void (*pack_images)(const tutti_gemm_images *images, uint16_t *to);
} tutti_gemm_tile;

/* The best one this CPU runs; NULL where the build is one for another CPU alone. */
const tutti_gemm_tile *tutti__gemm_tile(void);
/* Whether there is one, which kernels rely on: asked by every target that picks among them, before
 * it does. */
tutti_status tutti__gemm_check_build(void);
/* The best one that multiplies bf16, or NULL: the CPU has no instructions for it. */
const tutti_gemm_tile *tutti__gemm_bf16_tile(void);

/* How n columns are cut into panels: first `wides` wide ones, then `narrows` narrow ones, with the
 * fewest columns of padding. */
typedef struct tutti_gemm_panels {
    int64_t wides, narrows, padded; /* padded: columns of all panels together */
} tutti_gemm_panels;
tutti_gemm_panels tutti__gemm_panels(const tutti_gemm_tile *tile, int64_t n);
/* Of the panel that begins with a column. */
static inline int64_t tutti__gemm_panel_width(const tutti_gemm_tile *tile,
                                              const tutti_gemm_panels *panels, int64_t column)
{
    return column < panels->wides * tile->wide ? tile->wide : tile->narrow;
}

#endif
