/* shallow.h: c[rows, n] = or += aT b for few lines of a[k, rows] and b[k, n], which are read as
 * they stand; every element is the sum of its products in order of k, from zero. Lines of c follow
 * one another. */
#ifndef TUTTI_DEVICE_CPU_SHALLOW_H
#define TUTTI_DEVICE_CPU_SHALLOW_H

#include <stdbool.h>

#include "device/cpu/vector.h"

/* Sums of a tile stay in registers, of which there are 32 or 16. */
#if VEC_NEON || VEC_LANES == 16
enum { SHALLOW_TILE_ROWS = 6, SHALLOW_VECS = 4 };
#else
enum { SHALLOW_TILE_ROWS = 3, SHALLOW_VECS = 4 };
#endif

/* Of the last register of a line only `lanes` are there. */
VEC_INLINE void shallow_tile(int rows, int vecs, int64_t lanes, int64_t n, int64_t k,
                             const float *a, int64_t lda, const float *b, bool add, float *c)
{
    vec sum[SHALLOW_TILE_ROWS][SHALLOW_VECS];
    VEC_UNROLL for (int i = 0; i < rows; i++) VEC_UNROLL for (int j = 0; j < vecs; j++) sum[i][j] =
        (vec){0};
    for (int64_t p = 0; p < k; p++, a += lda, b += n) {
        vec line[SHALLOW_VECS];
        VEC_UNROLL for (int j = 0; j < vecs; j++) line[j] =
            vec_load_lanes(b + VEC_LANES * j, j + 1 < vecs ? VEC_LANES : lanes);
        VEC_UNROLL for (int i = 0; i < rows; i++)
        {
            vec scalar = vec_splat(a[i]);
            VEC_UNROLL for (int j = 0; j < vecs; j++) sum[i][j] =
                vec_fma(line[j], scalar, sum[i][j]);
        }
    }
    VEC_UNROLL for (int i = 0; i < rows; i++) VEC_UNROLL for (int j = 0; j < vecs; j++)
    {
        float *to = c + i * n + VEC_LANES * j;
        int64_t some = j + 1 < vecs ? VEC_LANES : lanes;
        vec_store_lanes(to, add ? vec_load_lanes(to, some) + sum[i][j] : sum[i][j], some);
    }
}

VEC_INLINE void shallow_rows(int rows, int64_t n, int64_t k, const float *a, int64_t lda,
                             const float *b, bool add, float *c)
{
    int64_t j = 0;
    for (; j + SHALLOW_VECS * VEC_LANES <= n; j += SHALLOW_VECS * VEC_LANES)
        shallow_tile(rows, SHALLOW_VECS, VEC_LANES, n, k, a, lda, b + j, add, c + j);
    for (; j + VEC_LANES <= n; j += VEC_LANES)
        shallow_tile(rows, 1, VEC_LANES, n, k, a, lda, b + j, add, c + j);
    if (VEC_MASKED && j < n) {
        shallow_tile(rows, 1, n - j, n, k, a, lda, b + j, add, c + j);
        return;
    }
    for (int i = 0; i < rows; i++)
        for (int64_t at = j; at < n; at++) {
            float sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += a[p * lda + i] * b[p * n + at];
            c[i * n + at] = add ? c[i * n + at] + sum : sum;
        }
}

static inline void shallow_product(int64_t rows, int64_t n, int64_t k, const float *a, int64_t lda,
                                   const float *b, bool add, float *c)
{
    int64_t i = 0;
    for (; i + SHALLOW_TILE_ROWS <= rows; i += SHALLOW_TILE_ROWS)
        shallow_rows(SHALLOW_TILE_ROWS, n, k, a + i, lda, b, add, c + i * n);
    for (; i < rows; i++)
        shallow_rows(1, n, k, a + i, lda, b, add, c + i * n);
}

#endif
