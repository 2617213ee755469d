/* math.h: elementary functions without branches, so that compilers make vector code of them.
 *
 * Floats: at most 4 units in the last place over the whole range, with infinities, NaN and denormal
 * numbers handled as C's functions do. Doubles: C's functions.
 *
 * Rounding to a whole number is done by adding and taking away ROUNDER = 1.5 * 2^23: between them the
 * low bits of the sum hold the number as an integer. */
#ifndef TUTTI_DEVICE_CPU_TILE_MATH_H
#define TUTTI_DEVICE_CPU_TILE_MATH_H

#include <math.h>
#include <stdint.h>

#define MATH_INLINE static inline __attribute__((always_inline, unused))
#define ROUNDER 12582912.0f

#if defined(__FMA__) || defined(__aarch64__)
#define FMA(a, b, c) __builtin_fmaf(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif

MATH_INLINE uint32_t bits_of(float x)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

MATH_INLINE float float_of(uint32_t bits)
{
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^n for n in [-126, 127], n given as the bits of n + ROUNDER. */
MATH_INLINE float power_of_two(uint32_t rounded)
{
    return float_of((rounded << 23) + 0x3f800000u);
}

/* x = n ln 2 + r, |r| <= ln 2 / 2; returns the bits of n + ROUNDER. */
MATH_INLINE uint32_t reduce_by_ln2(float x, float *ret_r)
{
    float rounded = FMA(x, 1.44269504f, ROUNDER), n = rounded - ROUNDER;
    float r = FMA(n, -0.693359375f, x);
    *ret_r = FMA(n, 2.12194440e-4f, r);
    return bits_of(rounded);
}

/* (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2 */
MATH_INLINE float exp_tail(float r)
{
    float p = 1.98411770e-4f;
    p = FMA(p, r, 1.39347240e-3f);
    p = FMA(p, r, 8.33346229e-3f);
    p = FMA(p, r, 4.16664556e-2f);
    p = FMA(p, r, 1.66666657e-1f);
    return FMA(p, r, 0.5f);
}

/* e^x. 2^n is applied in two halves, so that results from 2^-149 to the largest come out right. */
MATH_INLINE float exp_f32(float x)
{
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    float r;
    uint32_t n = reduce_by_ln2(x, &r);
    float p = FMA(exp_tail(r), r * r, r) + 1.0f;
    /* In `bits_of(ROUNDER) + n` the sign of n is lost by a shift, so halve relative to ROUNDER. */
    int32_t whole = (int32_t)(n - 0x4b400000u), half = whole >> 1;
    return p * power_of_two((uint32_t)half) * power_of_two((uint32_t)(whole - half));
}

/* e^x - 1 = 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)) */
MATH_INLINE float expm1_f32(float x)
{
    float clipped = x < -25.0f ? -25.0f : x;
    clipped = clipped > 89.0f ? 89.0f : clipped;
    float r;
    uint32_t n = reduce_by_ln2(clipped, &r);
    float tail = exp_tail(r), scale = power_of_two(n - 0x4b400000u - 1u);
    float small = FMA(tail, r * r, r);
    float y = 2.0f * FMA(scale, small, scale - 0.5f);
    return n == 0x4b400000u ? small : y; /* also keeps -0 */
}

/* log(m 2^k (1 + c)) with m in [sqrt(1/2), sqrt(2)): s = f / (2 + f) with f = m - 1, and
 * log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)). c is a correction of the argument's rounding. */
MATH_INLINE float log_parts(float f, float k, float c)
{
    float s = f / (2.0f + f), z = s * s, w = z * z;
    float t1 = w * FMA(w, 0.24279078841f, 0.40000972152f);
    float t2 = z * FMA(w, 0.28498786688f, 0.66666662693f);
    float half = 0.5f * f * f;
    float low = FMA(s, half + (t1 + t2), FMA(k, 9.0580006145e-06f, c));
    return FMA(k, 6.9313812256e-01f, f - (half - low));
}

MATH_INLINE float log_special(float x, float y)
{
    y = x == 0.0f ? -INFINITY : y;
    y = x < 0.0f ? NAN : y;
    return x < INFINITY ? y : x; /* infinity and NaN: themselves */
}

MATH_INLINE float log_f32(float x)
{
    float tiny = x < 0x1p-126f ? 1.0f : 0.0f;
    uint32_t bits = bits_of(tiny > 0.0f ? x * 0x1p23f : x) + (0x3f800000u - 0x3f3504f3u);
    float k = (float)((int32_t)(bits >> 23) - 127) - 23.0f * tiny;
    float m = float_of((bits & 0x007fffffu) + 0x3f3504f3u);
    return log_special(x, log_parts(m - 1.0f, k, 0.0f));
}

/* log(1 + x): u = 1 + x rounded; what rounding lost, relative to u, is c. */
MATH_INLINE float log1p_f32(float x)
{
    float u = 1.0f + x;
    float lost = x > 1.0f ? 1.0f - (u - x) : x - (u - 1.0f);
    uint32_t bits = bits_of(u) + (0x3f800000u - 0x3f3504f3u);
    float k = (float)((int32_t)(bits >> 23) - 127);
    float m = float_of((bits & 0x007fffffu) + 0x3f3504f3u);
    float y = log_parts(m - 1.0f, k, lost / u);
    y = u == 1.0f ? x : y; /* also keeps -0 and denormal numbers */
    y = x == -1.0f ? -INFINITY : y;
    y = x < -1.0f ? NAN : y;
    return x < INFINITY ? y : x;
}

MATH_INLINE float tanh_f32(float x)
{
    float a = __builtin_fabsf(x);
    float t = expm1_f32(2.0f * (a > 10.0f ? 10.0f : a));
    return __builtin_copysignf(t / (t + 2.0f), x);
}

/* e = e^-|x| never overflows: 1 / (1 + e) or e / (1 + e). */
MATH_INLINE float sigmoid_f32(float x)
{
    float e = exp_f32(-__builtin_fabsf(x));
    return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

MATH_INLINE float softplus_f32(float x)
{
    float tail = log1p_f32(exp_f32(-__builtin_fabsf(x)));
    return (x > 0.0f ? x : x != x ? x : 0.0f) + tail;
}

/* |x| <= 0.93: odd polynomial; beyond: 1 - e^(polynomial). */
MATH_INLINE float erf_f32(float x)
{
    float t = __builtin_fabsf(x), s = x * x;
    float r = FMA(-1.72853470e-5f, t, 3.83197126e-4f);
    float u = FMA(-3.88396438e-3f, t, 2.42546219e-2f);
    r = FMA(r, s, u);
    r = FMA(r, t, -1.06777877e-1f);
    r = FMA(r, t, -6.34846687e-1f);
    r = FMA(r, t, -1.28717512e-1f);
    r = FMA(r, t, -t);
    r = t > 4.0f ? -20.0f : r;
    float far = __builtin_copysignf(1.0f - exp_f32(r), x);
    float p = -5.96761703e-4f;
    p = FMA(p, s, 4.99119423e-3f);
    p = FMA(p, s, -2.67681349e-2f);
    p = FMA(p, s, 1.12819925e-1f);
    p = FMA(p, s, -3.76125336e-1f);
    p = FMA(p, s, 1.28379166e-1f);
    float y = t > 0.927734375f ? far : FMA(p, x, x);
    return x != x ? x : y;
}

/* erfc(a) for a >= 0: (1 + 2a) e^(a^2) erfc(a) is a polynomial in q = (a - 2) / (a + 2). */
MATH_INLINE float erfc_positive_f32(float a)
{
    float below = a < 11.0f ? a : 11.0f, r = 1.0f / (below + 2.0f);
    float q = (below - 2.0f) * r;
    float t = FMA(q + 1.0f, -2.0f, below), e = FMA(-below, q, t);
    q = FMA(r, e, q);
    float p = -4.01139259e-4f;
    p = FMA(p, q, -1.23075210e-3f);
    p = FMA(p, q, 1.31355342e-3f);
    p = FMA(p, q, 8.63227434e-3f);
    p = FMA(p, q, -8.05991981e-3f);
    p = FMA(p, q, -5.42046614e-2f);
    p = FMA(p, q, 1.64055392e-1f);
    p = FMA(p, q, -1.66031361e-1f);
    p = FMA(p, q, -9.27639827e-2f);
    p = FMA(p, q, 2.76978403e-1f);
    r = 0.5f / (below + 0.5f);
    q = FMA(p, r, r);
    e = (p - q) + FMA(q + q, -below, 1.0f);
    r = FMA(e, r, q);
    float s = below * below;
    e = exp_f32(-s);
    t = FMA(-below, below, s);
    return FMA(r, e, r * e * t);
}

/* x P(x) with P(x) = erfc(-x / sqrt 2) / 2, without cancellation for negative x. */
MATH_INLINE float gelu_f32(float x)
{
    float a = __builtin_fabsf(x), tail = 0.5f * erfc_positive_f32(a * 0.70710678f);
    float y = x * (x < 0.0f ? tail : 1.0f - tail);
    return x < -14.5f ? -0.0f : y;
}

/* sin and cos for |x| <= MATH_TRIG_MOST: x = n pi/2 + r with pi/2 in three parts. */
#define MATH_TRIG_MOST 8192.0f
MATH_INLINE float trig_f32(float x, uint32_t quarter)
{
    float rounded = FMA(x, 0.636619772f, ROUNDER), n = rounded - ROUNDER;
    float r = FMA(n, -1.57079601287841797f, x);
    r = FMA(n, -3.1391647326017846353e-07f, r);
    r = FMA(n, -5.390302529957764765e-15f, r);
    uint32_t quadrant = bits_of(rounded) + quarter;
    float z = r * r;
    float s = FMA(FMA(2.86567956e-6f, z, -1.98559923e-4f), z, 8.33338592e-3f);
    s = FMA(FMA(s, z, -1.66666672e-1f), z * r, r);
    float c = FMA(FMA(2.44677067e-5f, z, -1.38877297e-3f), z, 4.16666567e-2f);
    c = FMA(FMA(c, z, -0.5f), z, 1.0f);
    float y = quadrant & 1 ? c : s;
    return float_of(bits_of(y) ^ (quadrant & 2) << 30);
}

/* The same names for both element types. */
#define e_exp(x) _Generic((x), float: exp_f32, double: exp)(x)
#define e_expm1(x) _Generic((x), float: expm1_f32, double: expm1)(x)
#define e_log(x) _Generic((x), float: log_f32, double: log)(x)
#define e_log1p(x) _Generic((x), float: log1p_f32, double: log1p)(x)
#define e_tanh(x) _Generic((x), float: tanh_f32, double: tanh)(x)
#define e_erf(x) _Generic((x), float: erf_f32, double: erf)(x)
#define e_sigmoid(x) _Generic((x), float: sigmoid_f32, double: sigmoid_f64)(x)
#define e_softplus(x) _Generic((x), float: softplus_f32, double: softplus_f64)(x)
#define e_gelu(x) _Generic((x), float: gelu_f32, double: gelu_f64)(x)
#define e_abs(x) _Generic((x), float: fabsf, double: fabs)(x)
#define e_sqrt(x) _Generic((x), float: sqrtf, double: sqrt)(x)
#define e_floor(x) _Generic((x), float: floorf, double: floor)(x)
#define e_ceil(x) _Generic((x), float: ceilf, double: ceil)(x)
#define e_trunc(x) _Generic((x), float: truncf, double: trunc)(x)
#define e_round(x) _Generic((x), float: nearbyintf, double: nearbyint)(x)
#define e_pow(x, y) _Generic((x), float: powf, double: pow)(x, y)
#define e_fmod(x, y) _Generic((x), float: fmodf, double: fmod)(x, y)
#define e_copysign(x, y) _Generic((x), float: copysignf, double: copysign)(x, y)
#define e_tan(x) _Generic((x), float: tanf, double: tan)(x)
#define e_asin(x) _Generic((x), float: asinf, double: asin)(x)
#define e_acos(x) _Generic((x), float: acosf, double: acos)(x)
#define e_atan(x) _Generic((x), float: atanf, double: atan)(x)
#define e_sinh(x) _Generic((x), float: sinhf, double: sinh)(x)
#define e_cosh(x) _Generic((x), float: coshf, double: cosh)(x)

MATH_INLINE double sigmoid_f64(double x)
{
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

MATH_INLINE double softplus_f64(double x)
{
    return (x > 0 ? x : x != x ? x : 0) + log1p(exp(-fabs(x)));
}

MATH_INLINE double gelu_f64(double x)
{
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}

#endif
