/* avx512_bf16.h: tile_bf16.c's tile by vdpbf16ps: 16 sums += 16 pairs times one pair. */
#ifndef TUTTI_DEVICE_CPU_GEMM_AVX512_BF16_H
#define TUTTI_DEVICE_CPU_GEMM_AVX512_BF16_H

#include <immintrin.h>
#include <string.h>

#include "device/cpu/vector.h"

enum {
    ROWS = 12,
    LOW_ROWS = 4, /* a lower tile that costs less */
    WIDE = 32,
    NARROW = 16,
    DEPTH = 640,
    GROUP_A = 2,
    GROUP_B = 2,
    PAD = 2,
};

VEC_INLINE void tile_begin(void)
{
}

VEC_INLINE void tile_end(void)
{
}

VEC_INLINE void tile_of(int rows, int vecs, int64_t k, const uint16_t *a, const int32_t *at,
                        const uint16_t *b, float *c, int64_t ldc, bool add)
{
    __m512 sum[ROWS][2];
    VEC_UNROLL for (int i = 0; i < rows; i++) VEC_UNROLL for (int j = 0; j < vecs; j++) sum[i][j] =
        _mm512_setzero_ps();
    VEC_UNROLL_BY_4
    for (int64_t p = 0; p < k; p += 2) {
        const uint16_t *group = a + (at == NULL ? p * ROWS : at[p / 2]);
        __m512bh line[2];
        VEC_UNROLL for (int j = 0; j < vecs; j++) line[j] =
            (__m512bh)_mm512_loadu_si512(b + p * 16 * vecs + 32 * j);
        VEC_UNROLL for (int i = 0; i < rows; i++)
        {
            int32_t pair;
            memcpy(&pair, group + 2 * i, sizeof pair);
            __m512bh scalar = (__m512bh)_mm512_set1_epi32(pair);
            VEC_UNROLL for (int j = 0; j < vecs; j++) sum[i][j] =
                _mm512_dpbf16_ps(sum[i][j], line[j], scalar);
        }
    }
    VEC_UNROLL for (int i = 0; i < rows; i++) VEC_UNROLL for (int j = 0; j < vecs; j++)
    {
        float *to = c + i * ldc + 16 * j;
        vec_store(to, add ? vec_load(to) + (vec)sum[i][j] : (vec)sum[i][j]);
    }
}

/* c = or += rows of the panel a times the panel b; k is a multiple of PAD. Up to ROWS rows are
 * written. at: NULL, or where each group of k begins in a. */
VEC_INLINE void tile(int64_t rows, int64_t k, const uint16_t *a, const int32_t *at,
                     const uint16_t *b, int64_t width, float *c, int64_t ldc, bool add)
{
    if (rows > LOW_ROWS && width == WIDE)
        tile_of(ROWS, 2, k, a, at, b, c, ldc, add);
    else if (rows > LOW_ROWS)
        tile_of(ROWS, 1, k, a, at, b, c, ldc, add);
    else if (width == WIDE)
        tile_of(LOW_ROWS, 2, k, a, at, b, c, ldc, add);
    else
        tile_of(LOW_ROWS, 1, k, a, at, b, c, ldc, add);
}

#endif
