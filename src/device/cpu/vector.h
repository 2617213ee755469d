/* vector.h: one register of floats, for files that are compiled once for each instruction set.
 *
 * `vec` is a vector of VEC_LANES floats of the set at hand. Arithmetic is written with the operators
 * of C; vec_fma(a, b, c) = a * b + c, fused where the set has it. */
#ifndef TUTTI_DEVICE_CPU_VECTOR_H
#define TUTTI_DEVICE_CPU_VECTOR_H

#include <stdint.h>

#if defined(__aarch64__)
#include <arm_neon.h>
#define VEC_BYTES 16
#elif defined(__AVX512F__)
#include <immintrin.h>
#define VEC_BYTES 64
#elif defined(__AVX2__)
#include <immintrin.h>
#define VEC_BYTES 32
#else
#define VEC_BYTES 16
#endif
#define VEC_LANES (VEC_BYTES / 4)

typedef float vec __attribute__((vector_size(VEC_BYTES)));
typedef float vec_unaligned __attribute__((vector_size(VEC_BYTES), aligned(4), may_alias));
/* Four floats, whatever the set. */
typedef float quad __attribute__((vector_size(16)));
typedef float quad_unaligned __attribute__((vector_size(16), aligned(4), may_alias));

#define VEC_INLINE static inline __attribute__((always_inline))

VEC_INLINE vec vec_load(const float *p)
{
    return *(const vec_unaligned *)p;
}

VEC_INLINE void vec_store(float *p, vec x)
{
    *(vec_unaligned *)p = x;
}

VEC_INLINE vec vec_splat(float x)
{
    return x - (vec){0};
}

VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
#if defined(__aarch64__)
    return vfmaq_f32(c, a, b);
#elif defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
    return _mm256_fmadd_ps(a, b, c);
#else
    return a * b + c;
#endif
}

/* Rows 0..3 become columns 0..3. */
VEC_INLINE void quad_transpose(quad *a, quad *b, quad *c, quad *d)
{
    quad ab_low = __builtin_shufflevector(*a, *b, 0, 4, 1, 5);
    quad ab_high = __builtin_shufflevector(*a, *b, 2, 6, 3, 7);
    quad cd_low = __builtin_shufflevector(*c, *d, 0, 4, 1, 5);
    quad cd_high = __builtin_shufflevector(*c, *d, 2, 6, 3, 7);
    *a = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *b = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *c = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *d = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

/* Loops over registers must be unrolled for the array of registers to become registers. */
#if defined(__clang__)
#define VEC_UNROLL _Pragma("clang loop unroll(full)")
#define VEC_UNROLL_BY_4 _Pragma("clang loop unroll_count(4)")
#else
#define VEC_UNROLL _Pragma("GCC unroll 16")
#define VEC_UNROLL_BY_4 _Pragma("GCC unroll 4")
#endif

#endif
