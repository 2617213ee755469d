/* bfmmla.h: tile_bf16.c's tile by bfmmla: 2 x 2 sums += 2 rows x 4 by 4 x 2 columns. */
#ifndef TUTTI_DEVICE_CPU_GEMM_BFMMLA_H
#define TUTTI_DEVICE_CPU_GEMM_BFMMLA_H

#include <arm_neon.h>

#include "device/cpu/vector.h"

enum {
    ROWS = 8,
    LOW_ROWS = 4, /* a lower tile that costs less */
    WIDE = 12,
    NARROW = 8,
    DEPTH = 1024,
    GROUP_A = 4,
    GROUP_B = 4,
    PAD = 4,
};

VEC_INLINE void tile_begin(void)
{
}

VEC_INLINE void tile_end(void)
{
}

VEC_INLINE void tile_store(float *at, vec x, bool add)
{
    vec_store(at, add ? vec_load(at) + x : x);
}

VEC_INLINE void tile_of(int rows, int cols, int64_t k, const uint16_t *a, const int32_t *at,
                        const uint16_t *b, float *c, int64_t ldc, bool add)
{
    float32x4_t sum[ROWS / 2][WIDE / 2];
    VEC_UNROLL for (int i = 0; i < rows / 2; i++) VEC_UNROLL for (int j = 0; j < cols / 2; j++)
        sum[i][j] = vdupq_n_f32(0);
    const bfloat16_t *from_a = (const bfloat16_t *)a, *from_b = (const bfloat16_t *)b;
    for (int64_t p = 0; p < k; p += 4, from_b += 4 * cols) {
        const bfloat16_t *group = from_a + (at == NULL ? p * ROWS : *at++);
        bfloat16x8_t two[ROWS / 2];
        VEC_UNROLL for (int i = 0; i < rows / 2; i++) two[i] = vld1q_bf16(group + 8 * i);
        VEC_UNROLL for (int j = 0; j < cols / 2; j++)
        {
            /* 24 sums, 4 pairs of rows and 4 registers left: lines are not loaded ahead. */
            if (j % 2 == 0)
                __asm__ volatile("" ::: "memory");
            bfloat16x8_t line = vld1q_bf16(from_b + 8 * j);
            VEC_UNROLL for (int i = 0; i < rows / 2; i++) sum[i][j] =
                vbfmmlaq_f32(sum[i][j], two[i], line);
        }
    }
    VEC_UNROLL for (int i = 0; i < rows / 2; i++) VEC_UNROLL for (int j = 0; j < cols / 2; j += 2)
    {
        float64x2_t left = vreinterpretq_f64_f32(sum[i][j]);
        float64x2_t right = vreinterpretq_f64_f32(sum[i][j + 1]);
        float *to = c + 2 * i * ldc + 2 * j;
        tile_store(to, vreinterpretq_f32_f64(vzip1q_f64(left, right)), add);
        tile_store(to + ldc, vreinterpretq_f32_f64(vzip2q_f64(left, right)), add);
    }
}

/* c = or += rows of the panel a times the panel b; k is a multiple of PAD. Up to ROWS rows are
 * written. at: NULL, or where each group of k begins in a. */
VEC_INLINE void tile(int64_t rows, int64_t k, const uint16_t *a, const int32_t *at,
                     const uint16_t *b, int64_t width, float *c, int64_t ldc, bool add)
{
    if (rows > LOW_ROWS && width == WIDE)
        tile_of(ROWS, WIDE, k, a, at, b, c, ldc, add);
    else if (rows > LOW_ROWS)
        tile_of(ROWS, NARROW, k, a, at, b, c, ldc, add);
    else if (width == WIDE)
        tile_of(LOW_ROWS, WIDE, k, a, at, b, c, ldc, add);
    else
        tile_of(LOW_ROWS, NARROW, k, a, at, b, c, ldc, add);
}

#endif
