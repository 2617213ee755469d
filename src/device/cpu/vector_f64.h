/* vector_f64.h: one register of doubles, in the manner of vector.h. */
#ifndef TUTTI_DEVICE_CPU_VECTOR_F64_H
#define TUTTI_DEVICE_CPU_VECTOR_F64_H

#include "device/cpu/vector.h"

#define DVEC_LANES (VEC_BYTES / 8)

typedef double dvec __attribute__((vector_size(VEC_BYTES)));
typedef double dvec_unaligned __attribute__((vector_size(VEC_BYTES), aligned(8), may_alias));
typedef int64_t divec __attribute__((vector_size(VEC_BYTES)));
typedef uint64_t duvec __attribute__((vector_size(VEC_BYTES))); /* sums that may wrap round */

/* What a comparison of two vectors gives: one truth for each lane. */
#if defined(__AVX512F__)
typedef __mmask8 dmask;
#else
typedef divec dmask;
#endif

VEC_INLINE dvec dvec_load(const double *p)
{
    return *(const dvec_unaligned *)p;
}

VEC_INLINE void dvec_store(double *p, dvec x)
{
    *(dvec_unaligned *)p = x;
}

/* The first `count` lanes, fewer than all: zeros beyond, and nothing is touched there. */
VEC_INLINE dvec dvec_load_part(const double *p, int64_t count)
{
    double part[DVEC_LANES] = {0};
    for (int64_t i = 0; i < count; i++)
        part[i] = p[i];
    return dvec_load(part);
}

VEC_INLINE void dvec_store_part(double *p, dvec x, int64_t count)
{
    double part[DVEC_LANES];
    dvec_store(part, x);
    for (int64_t i = 0; i < count; i++)
        p[i] = part[i];
}

VEC_INLINE dvec dvec_splat(double x)
{
    return x - (dvec){0};
}

/* a * b + c; rounded once where VEC_FUSED. */
VEC_INLINE dvec dvec_fma(dvec a, dvec b, dvec c)
{
#if VEC_NEON
    return vfmaq_f64(c, a, b);
#elif VEC_SVE
    typedef svfloat64_t sve __attribute__((arm_sve_vector_bits(__ARM_FEATURE_SVE_BITS)));
    return (dvec)svmla_f64_x(svptrue_b64(), (sve)c, (sve)a, (sve)b);
#elif defined(__AVX512F__)
    return _mm512_fmadd_pd(a, b, c);
#elif defined(__AVX2__)
    return _mm256_fmadd_pd(a, b, c);
#else
    return a * b + c;
#endif
}

/* c - a * b */
VEC_INLINE dvec dvec_fnma(dvec a, dvec b, dvec c)
{
#if VEC_NEON
    return vfmsq_f64(c, a, b);
#elif defined(__AVX512F__)
    return _mm512_fnmadd_pd(a, b, c);
#elif defined(__AVX2__)
    return _mm256_fnmadd_pd(a, b, c);
#else
    return dvec_fma(-a, b, c);
#endif
}

#if defined(__AVX512F__)
#define DVEC_COMPARE(name, operator, predicate)                                                    \
    VEC_INLINE dmask name(dvec a, dvec b)                                                          \
    {                                                                                              \
        return _mm512_cmp_pd_mask(a, b, predicate);                                                \
    }
#else
#define DVEC_COMPARE(name, operator, predicate)                                                    \
    VEC_INLINE dmask name(dvec a, dvec b)                                                          \
    {                                                                                              \
        return a operator b;                                                                       \
    }
#endif
DVEC_COMPARE(dvec_lt, <, _CMP_LT_OQ)
DVEC_COMPARE(dvec_le, <=, _CMP_LE_OQ)
DVEC_COMPARE(dvec_gt, >, _CMP_GT_OQ)
DVEC_COMPARE(dvec_eq, ==, _CMP_EQ_OQ)
DVEC_COMPARE(dvec_ne, !=, _CMP_NEQ_UQ)

/* yes where m, else no */
VEC_INLINE dvec dvec_select(dmask m, dvec yes, dvec no)
{
#if VEC_NEON
    return vbslq_f64((uint64x2_t)m, yes, no);
#elif defined(__AVX512F__)
    return _mm512_mask_blend_pd(m, no, yes);
#elif defined(__AVX2__)
    return _mm256_blendv_pd(no, yes, (dvec)m);
#else
    return (dvec)((m & (divec)yes) | (~m & (divec)no));
#endif
}

/* Whether some lane, all bits of which are alike, is not 0. */
VEC_INLINE int dvec_any_bits(divec x)
{
#if VEC_NEON
    return vmaxvq_u32((uint32x4_t)x) != 0;
#elif defined(__AVX512F__)
    return _mm512_movepi64_mask((__m512i)x) != 0;
#elif defined(__AVX2__)
    return _mm256_movemask_pd((__m256d)x) != 0;
#else
    int64_t any = 0;
    VEC_UNROLL for (int i = 0; i < DVEC_LANES; i++) any |= x[i];
    return any != 0;
#endif
}

/* Bounds that let a NaN in x through; of two zeros either. */
VEC_INLINE dvec dvec_at_least(dvec x, double low)
{
    const dvec bound = dvec_splat(low);
#if VEC_NEON
    return vmaxq_f64(x, bound);
#elif defined(__AVX512F__)
    return _mm512_maskz_max_pd(0xff, bound, x);
#elif defined(__AVX2__)
    return _mm256_max_pd(bound, x);
#else
    return dvec_select(dvec_lt(x, bound), bound, x);
#endif
}

VEC_INLINE dvec dvec_at_most(dvec x, double high)
{
    const dvec bound = dvec_splat(high);
#if VEC_NEON
    return vminq_f64(x, bound);
#elif defined(__AVX512F__)
    return _mm512_maskz_min_pd(0xff, bound, x);
#elif defined(__AVX2__)
    return _mm256_min_pd(bound, x);
#else
    return dvec_select(dvec_gt(x, bound), bound, x);
#endif
}

VEC_INLINE dvec dvec_sqrt(dvec x)
{
#if VEC_NEON
    return vsqrtq_f64(x);
#elif defined(__AVX512F__)
    return _mm512_maskz_sqrt_pd(0xff, x);
#elif defined(__AVX2__)
    return _mm256_sqrt_pd(x);
#else
    VEC_UNROLL for (int i = 0; i < DVEC_LANES; i++) x[i] = __builtin_sqrt(x[i]);
    return x;
#endif
}

VEC_INLINE dvec dvec_abs(dvec x)
{
    return (dvec)((divec)x & INT64_MAX);
}

/* |x| with the sign of `sign`. */
VEC_INLINE dvec dvec_copysign(dvec x, dvec sign)
{
    return (dvec)(((divec)x & INT64_MAX) | ((divec)sign & INT64_MIN));
}

#endif
