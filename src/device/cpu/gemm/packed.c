/* packed.c: products with a matrix that was packed before. Blocks of `depth` stand one after the
 * other, in a block the panels, as in a chunk of gemm.c; the bits are the same too. */
#include "device/cpu/gemm/run.h"

#include <string.h>

#include "tensor/tensor.h"

/* Width of panel j, whose first column is `start`. */
static int64_t width_of(const tutti_gemm_tile *tile, const tutti_gemm_panels *panels, int64_t start)
{
    return start < panels->wides * tile->wide ? tile->wide : tile->narrow;
}

int64_t tutti__gemm_row_columns(const tutti_gemm_tile *tile, int64_t n)
{
    return n < 4 * tile->row ? tile->row / 2 : tile->row;
}

int64_t tutti__gemm_row_floats(int64_t n, int64_t k)
{
    int64_t width = tutti__gemm_row_columns(tutti__gemm_tile(), n);
    return (n + width - 1) / width * width * k;
}

int64_t tutti__gemm_packed_floats(int64_t n, int64_t k)
{
    return tutti__gemm_panels(tutti__gemm_tile(), n).padded * k;
}

void tutti__gemm_pack_row_panel(int64_t n, int64_t k, const char *b, const int64_t strides[2],
                                int64_t panel, float *packed)
{
    int64_t width = tutti__gemm_row_columns(tutti__gemm_tile(), n), start = panel * width;
    int64_t dims[2] = {k, least(width, n - start)}, to[2] = {width, 1};
    packed += start * k;
    if (dims[1] < width)
        memset(packed, 0, (size_t)(k * width) * sizeof *packed);
    tutti__copy_strided(2, dims, sizeof *packed, packed, to,
                        b + start * strides[1] * (int64_t)sizeof *packed, strides);
}

void tutti__gemm_pack_row(const tutti_gemm *g, float *packed)
{
    int64_t width = tutti__gemm_row_columns(tutti__gemm_tile(), g->n);
    int64_t strides[2] = {g->trans_b ? 1 : g->ldb, g->trans_b ? g->ldb : 1};
    for (int64_t panel = 0; panel * width < g->n; panel++)
        tutti__gemm_pack_row_panel(g->n, g->k, (const char *)g->b, strides, panel, packed);
}

void tutti__gemm_pack(const tutti_gemm_tile *tile, const tutti_gemm *g, float *packed)
{
    tutti_gemm_panels panels = tutti__gemm_panels(tile, g->n);
    int64_t step = g->trans_b ? 1 : g->ldb, stride = g->trans_b ? g->ldb : 1;
    for (int64_t p = 0; p < g->k; p += tile->depth) {
        int64_t depth = least(tile->depth, g->k - p), width;
        for (int64_t start = 0; start < g->n; start += width) {
            width = width_of(tile, &panels, start);
            tile->pack(width, least(width, g->n - start), depth, g->b + p * step + start * stride,
                       step, stride, packed + p * panels.padded + start * depth);
        }
    }
}

int64_t tutti__gemm_scratch_floats(int64_t m)
{
    const tutti_gemm_tile *tile = tutti__gemm_tile();
    return (m + tile->rows - 1) / tile->rows * tile->rows * tile->depth;
}

/* Rows are used as they stand where the tile can and all of them are: those that are left over it
 * would pack for every panel. Rows a multiple of a page apart fall on one place in the cache. */
static bool rows_stand(const tutti_gemm_tile *tile, const tutti_gemm *g)
{
    return tile->multiply_rows != NULL && !g->trans_a && g->m % 4 == 0 && g->lda % 1024 != 0;
}

void tutti__gemm_with(const tutti_gemm_tile *tile, const tutti_gemm *g, const float *packed,
                      float *scratch)
{
    tutti_gemm_panels panels = tutti__gemm_panels(tile, g->n);
    int64_t step = g->trans_a ? g->lda : 1, stride = g->trans_a ? 1 : g->lda;
    bool direct = rows_stand(tile, g);
    for (int64_t p = 0; p < g->k; p += tile->depth) {
        int64_t depth = least(tile->depth, g->k - p), width;
        const float *a = g->a + p * step;
        for (int64_t row = 0; row < g->m && !direct; row += tile->rows)
            tile->pack(tile->rows, least(tile->rows, g->m - row), depth, a + row * stride, step,
                       stride, scratch + row * depth);
        for (int64_t start = 0; start < g->n; start += width) {
            width = width_of(tile, &panels, start);
            int64_t n = least(width, g->n - start);
            const float *b = packed + p * panels.padded + start * depth;
            float *c = g->c + start;
            if (direct)
                tile->multiply_rows(g->m, n, depth, a, g->lda, b, width, c, g->ldc,
                                    g->add || p > 0);
            else
                tile->multiply(g->m, n, depth, scratch, b, width, c, g->ldc, g->add || p > 0);
        }
    }
    for (int64_t i = 0; i < g->m && g->k == 0 && !g->add; i++)
        for (int64_t j = 0; j < g->n; j++)
            g->c[i * g->ldc + j] = 0;
}
