/* round.h: f32 to bf16, in every instruction set. */
#ifndef TUTTI_DEVICE_CPU_GEMM_ROUND_H
#define TUTTI_DEVICE_CPU_GEMM_ROUND_H

#include <string.h>

#include "device/cpu/vector.h"

typedef uint32_t bits_vec __attribute__((vector_size(VEC_BYTES)));
typedef uint16_t half_vec __attribute__((vector_size(VEC_BYTES / 2)));
typedef uint16_t half_unaligned __attribute__((vector_size(VEC_BYTES / 2), aligned(2), may_alias));

/* To nearest even; a NaN stays one. */
VEC_INLINE uint16_t round_one(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(x != x ? bits >> 16 | 0x40 : (bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

#if !defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
VEC_INLINE bits_vec rounded_bits(vec x)
{
    bits_vec bits = (bits_vec)x, high = bits >> 16;
    bits_vec rounded = (bits + 0x7fff + (high & 1)) >> 16;
    return (bits_vec)vec_select(vec_ne(x, x), (vec)(high | 0x40), (vec)rounded);
}
#endif

VEC_INLINE void round_vec(vec x, uint16_t *to)
{
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
    vst1_bf16((bfloat16_t *)to, vget_low_bf16(vcvtq_low_bf16_f32(x)));
#else
    *(half_unaligned *)to = __builtin_convertvector(rounded_bits(x), half_vec);
#endif
}

/* The first `count` < VEC_LANES of them. */
VEC_INLINE void round_part(vec x, int64_t count, uint16_t *to)
{
#if defined(__AVX512F__)
    _mm512_mask_cvtepi32_storeu_epi16(to, (__mmask16)((1u << count) - 1), (__m512i)rounded_bits(x));
#else
    for (int64_t i = 0; i < count; i++)
        to[i] = round_one(x[i]);
#endif
}

VEC_INLINE void round_line(int64_t count, const float *from, uint16_t *to)
{
    int64_t i = 0;
    for (; i + VEC_LANES <= count; i += VEC_LANES)
        round_vec(vec_load(from + i), to + i);
#if VEC_MASKED
    if (i < count)
        round_part(vec_load_part(from + i, count - i), count - i, to + i);
#else
    for (; i < count; i++)
        to[i] = round_one(from[i]);
#endif
}

#endif
