/* vector.h: one register of floats, for files that are compiled once for each instruction set.
 *
 * `vec` is a vector of VEC_LANES floats of the set at hand. Arithmetic is written with the
 * operators of C; vec_fma(a, b, c) = a * b + c, fused where the set has it. */
#ifndef TUTTI_DEVICE_CPU_VECTOR_H
#define TUTTI_DEVICE_CPU_VECTOR_H

#include <stdint.h>

#if defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS > 128
#include <arm_sve.h>
#define VEC_BYTES (__ARM_FEATURE_SVE_BITS / 8)
#define VEC_SVE 1
#elif defined(__aarch64__)
#include <arm_neon.h>
#define VEC_BYTES 16
#define VEC_NEON 1
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
#ifndef VEC_NEON
#define VEC_NEON 0
#endif
#ifndef VEC_SVE
#define VEC_SVE 0
#endif

typedef float vec __attribute__((vector_size(VEC_BYTES)));
typedef float vec_unaligned __attribute__((vector_size(VEC_BYTES), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(VEC_BYTES)));
typedef uint32_t uvec __attribute__((vector_size(VEC_BYTES))); /* sums that may wrap round */
/* Four floats, whatever the set. */
typedef float quad __attribute__((vector_size(16)));
typedef float quad_unaligned __attribute__((vector_size(16), aligned(4), may_alias));

#if VEC_SVE
typedef svfloat32_t vec_sve __attribute__((arm_sve_vector_bits(__ARM_FEATURE_SVE_BITS)));
#endif

/* What a comparison of two vectors gives: one truth for each lane. */
#if defined(__AVX512F__)
typedef __mmask16 vmask;
#else
typedef ivec vmask;
#endif

/* Loops over registers must be unrolled for the array of registers to become registers. */
#if defined(__clang__)
#define VEC_UNROLL _Pragma("clang loop unroll(full)")
#define VEC_UNROLL_BY_4 _Pragma("clang loop unroll_count(4)")
#else
#define VEC_UNROLL _Pragma("GCC unroll 16")
#define VEC_UNROLL_BY_4 _Pragma("GCC unroll 4")
#endif

#define VEC_INLINE static inline __attribute__((always_inline))

VEC_INLINE vec vec_load(const float *p)
{
    return *(const vec_unaligned *)p;
}

VEC_INLINE void vec_store(float *p, vec x)
{
    *(vec_unaligned *)p = x;
}

/* Whether parts of a vector can be loaded and stored by themselves. */
#if VEC_NEON || defined(__AVX512F__) || defined(__AVX2__)
#define VEC_MASKED 1
#else
#define VEC_MASKED 0
#endif

#if VEC_MASKED
/* The first `count` lanes: zeros beyond, and nothing is touched there. */
VEC_INLINE vec vec_load_part(const float *p, int64_t count)
{
#if VEC_NEON
    vec x = {0};
    if (count >= VEC_LANES)
        return vec_load(p);
    if (count >= 2)
        x = vcombine_f32(vld1_f32(p), vdup_n_f32(0));
    if (count == 3)
        x = vld1q_lane_f32(p + 2, x, 2);
    if (count == 1)
        x = vld1q_lane_f32(p, x, 0);
    return x;
#elif defined(__AVX512F__)
    return _mm512_maskz_loadu_ps((__mmask16)((1u << count) - 1), p);
#else
    ivec lanes = {0, 1, 2, 3, 4, 5, 6, 7};
    return _mm256_maskload_ps(p, (__m256i)(lanes < (ivec){0} + (int32_t)count));
#endif
}

VEC_INLINE void vec_store_part(float *p, vec x, int64_t count)
{
#if VEC_NEON
    if (count >= VEC_LANES)
        vec_store(p, x);
    else if (count >= 2)
        vst1_f32(p, vget_low_f32(x));
    if (count == 3)
        vst1q_lane_f32(p + 2, x, 2);
    if (count == 1)
        vst1q_lane_f32(p, x, 0);
#elif defined(__AVX512F__)
    _mm512_mask_storeu_ps(p, (__mmask16)((1u << count) - 1), x);
#else
    ivec lanes = {0, 1, 2, 3, 4, 5, 6, 7};
    _mm256_maskstore_ps(p, (__m256i)(lanes < (ivec){0} + (int32_t)count), x);
#endif
}
#endif

/* All lanes, or where parts are possible the first `lanes`. */
VEC_INLINE vec vec_load_lanes(const float *p, int64_t lanes)
{
#if VEC_MASKED
    if (lanes < VEC_LANES)
        return vec_load_part(p, lanes);
#endif
    (void)lanes;
    return vec_load(p);
}

VEC_INLINE void vec_store_lanes(float *p, vec x, int64_t lanes)
{
#if VEC_MASKED
    if (lanes < VEC_LANES) {
        vec_store_part(p, x, lanes);
        return;
    }
#endif
    (void)lanes;
    vec_store(p, x);
}

VEC_INLINE vec vec_splat(float x)
{
    return x - (vec){0};
}

/* Whether vec_fma and vec_fnma round once. */
#if defined(__aarch64__) || defined(__AVX2__)
#define VEC_FUSED 1
#else
#define VEC_FUSED 0
#endif

VEC_INLINE vec vec_fma(vec a, vec b, vec c)
{
#if VEC_NEON
    return vfmaq_f32(c, a, b);
#elif VEC_SVE
    return svmla_f32_x(svptrue_b32(), (vec_sve)c, (vec_sve)a, (vec_sve)b);
#elif defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
    return _mm256_fmadd_ps(a, b, c);
#else
    return a * b + c;
#endif
}

/* a * b + c for a constant c, and to be told from vec_fma on NEON alone: its multiply-add
 * overwrites its addend, so a constant in a register is copied before each one, and a copy takes
 * the place of an operation. A load does not: there the constant is read from memory each time. */
#if VEC_NEON
#define VEC_FMA_RELOAD(a, b, c)                                                                    \
    __extension__({                                                                                \
        static const float32x4_t vec_constant = {c, c, c, c};                                      \
        vec_fma_at(a, b, &vec_constant);                                                           \
    })
VEC_INLINE vec vec_fma_at(vec a, vec b, const float32x4_t *c)
{
    vec sum;
    __asm__("ldr %q0, %1\n\tfmla %0.4s, %2.4s, %3.4s" : "=&w"(sum) : "m"(*c), "w"(a), "w"(b));
    return sum;
}
#else
#define VEC_FMA_RELOAD(a, b, c) vec_fma(a, b, vec_splat(c))
#endif

/* c - a * b */
VEC_INLINE vec vec_fnma(vec a, vec b, vec c)
{
#if VEC_NEON
    return vfmsq_f32(c, a, b);
#elif VEC_SVE
    return svmls_f32_x(svptrue_b32(), (vec_sve)c, (vec_sve)a, (vec_sve)b);
#elif defined(__AVX512F__)
    return _mm512_fnmadd_ps(a, b, c);
#elif defined(__AVX2__)
    return _mm256_fnmadd_ps(a, b, c);
#else
    return c - a * b;
#endif
}

#if defined(__AVX512F__)
#define VEC_COMPARE(name, operator, predicate)                                                     \
    VEC_INLINE vmask name(vec a, vec b)                                                            \
    {                                                                                              \
        return _mm512_cmp_ps_mask(a, b, predicate);                                                \
    }
#else
#define VEC_COMPARE(name, operator, predicate)                                                     \
    VEC_INLINE vmask name(vec a, vec b)                                                            \
    {                                                                                              \
        return a operator b;                                                                       \
    }
#endif
VEC_COMPARE(vec_lt, <, _CMP_LT_OQ)
VEC_COMPARE(vec_le, <=, _CMP_LE_OQ)
VEC_COMPARE(vec_gt, >, _CMP_GT_OQ)
VEC_COMPARE(vec_ge, >=, _CMP_GE_OQ)
VEC_COMPARE(vec_eq, ==, _CMP_EQ_OQ)
VEC_COMPARE(vec_ne, !=, _CMP_NEQ_UQ)

/* yes where m, else no */
VEC_INLINE vec vec_select(vmask m, vec yes, vec no)
{
#if VEC_NEON
    return vbslq_f32((uint32x4_t)m, yes, no);
#elif defined(__AVX512F__)
    return _mm512_mask_blend_ps(m, no, yes);
#elif defined(__AVX2__)
    return _mm256_blendv_ps(no, yes, (vec)m);
#else
    return (vec)((m & (ivec)yes) | (~m & (ivec)no));
#endif
}

/* True in the first `count` lanes. */
VEC_INLINE vmask vec_first(int64_t count)
{
#if defined(__AVX512F__)
    return (vmask)((1u << count) - 1);
#else
    ivec lanes;
    VEC_UNROLL for (int i = 0; i < VEC_LANES; i++) lanes[i] = i;
    return lanes < (ivec){0} + (int32_t)count;
#endif
}

/* Lane i of the result is lane i + n of x, n a constant; the last ones are followed by the first.
 */
#define VEC_LANE(i, n) (((i) + (n)) % VEC_LANES)
#define VEC_FOUR(i, n) VEC_LANE(i, n), VEC_LANE(i + 1, n), VEC_LANE(i + 2, n), VEC_LANE(i + 3, n)
#if VEC_LANES == 16
#define VEC_TURN(x, n)                                                                             \
    __builtin_shufflevector(x, x, VEC_FOUR(0, n), VEC_FOUR(4, n), VEC_FOUR(8, n), VEC_FOUR(12, n))
#elif VEC_LANES == 8
#define VEC_TURN(x, n) __builtin_shufflevector(x, x, VEC_FOUR(0, n), VEC_FOUR(4, n))
#else
#define VEC_TURN(x, n) __builtin_shufflevector(x, x, VEC_FOUR(0, n))
#endif

/* As tutti__maximum (base/extremes.h): NaN in either gives NaN, 0 is larger than -0. Of two zeros,
 * and where one is NaN, AVX's gives b: so both orders are asked, which then differ in the sign of
 * zero only. AVX-512 has an instruction that knows zeros. */
VEC_INLINE vec vec_maximum(vec a, vec b)
{
#if VEC_NEON
    return vmaxq_f32(a, b);
#elif defined(__AVX512F__)
    return _mm512_mask_mov_ps(_mm512_maskz_range_ps(0xffff, a, b, 5),
                              _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), a + b);
#elif defined(__AVX2__)
    return _mm256_or_ps(_mm256_and_ps(_mm256_max_ps(a, b), _mm256_max_ps(b, a)),
                        _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
#else
    ivec most = (ivec)vec_select(vec_gt(a, b), a, b);
    return vec_select(vec_ne(a, a), a, (vec)(most & ((ivec)a | ~vec_eq(a, b))));
#endif
}

VEC_INLINE vec vec_minimum(vec a, vec b)
{
#if VEC_NEON
    return vminq_f32(a, b);
#elif defined(__AVX512F__)
    return _mm512_mask_mov_ps(_mm512_maskz_range_ps(0xffff, a, b, 4),
                              _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), a + b);
#elif defined(__AVX2__)
    return _mm256_or_ps(_mm256_or_ps(_mm256_min_ps(a, b), _mm256_min_ps(b, a)),
                        _mm256_cmp_ps(a, b, _CMP_UNORD_Q));
#else
    ivec least = (ivec)vec_select(vec_lt(a, b), a, b);
    return vec_select(vec_ne(a, a), a, (vec)(least | ((ivec)a & vec_eq(a, b))));
#endif
}

/* Bounds that let a NaN in x through; of two zeros either. */
VEC_INLINE vec vec_at_least(vec x, float low)
{
    const vec bound = vec_splat(low);
#if VEC_NEON
    return vmaxq_f32(x, bound);
#elif defined(__AVX512F__)
    return _mm512_maskz_max_ps(0xffff, bound, x);
#elif defined(__AVX2__)
    return _mm256_max_ps(bound, x);
#else
    return vec_select(x < bound, bound, x);
#endif
}

/* The same, of two zeros the bound's. */
VEC_INLINE vec vec_not_below(vec x, float low)
{
    const vec bound = vec_splat(low);
#if VEC_NEON
    return vmaxq_f32(x, bound);
#elif defined(__AVX512F__)
    return _mm512_mask_mov_ps(bound, _mm512_cmp_ps_mask(x, bound, _CMP_NLE_UQ), x);
#else
    return vec_select(vec_le(x, bound), bound, x);
#endif
}

VEC_INLINE vec vec_at_most(vec x, float high)
{
    const vec bound = vec_splat(high);
#if VEC_NEON
    return vminq_f32(x, bound);
#elif defined(__AVX512F__)
    return _mm512_maskz_min_ps(0xffff, bound, x);
#elif defined(__AVX2__)
    return _mm256_min_ps(bound, x);
#else
    return vec_select(x > bound, bound, x);
#endif
}

VEC_INLINE vec vec_sqrt(vec x)
{
#if VEC_NEON
    return vsqrtq_f32(x);
#elif defined(__AVX512F__)
    return _mm512_maskz_sqrt_ps(0xffff, x);
#elif defined(__AVX2__)
    return _mm256_sqrt_ps(x);
#elif defined(__x86_64__)
    return __builtin_ia32_sqrtps(x);
#else
    for (int i = 0; i < VEC_LANES; i++)
        x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
}

VEC_INLINE vec vec_abs(vec x)
{
#if VEC_NEON
    return vabsq_f32(x);
#else
    return (vec)((ivec)x & 0x7fffffff);
#endif
}

/* |x| with the sign of `sign`. */
VEC_INLINE vec vec_copysign(vec x, vec sign)
{
#if VEC_NEON
    return vbslq_f32(vdupq_n_u32(0x7fffffff), x, sign);
#elif defined(__AVX512F__)
    return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
        _mm512_set1_epi32(0x7fffffff), _mm512_castps_si512(x), _mm512_castps_si512(sign), 0xca));
#else
    return (vec)(((ivec)x & 0x7fffffff) | ((ivec)sign & INT32_MIN));
#endif
}

/* y, which is 0 or has the sign of x, with that sign also where it is 0. */
VEC_INLINE vec vec_sign_zero(vec y, vec x)
{
#if VEC_NEON
    return vec_copysign(y, x);
#else
    return (vec)((ivec)y | ((ivec)x & INT32_MIN));
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

#endif
