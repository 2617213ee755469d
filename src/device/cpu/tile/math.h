/* math.h: elementary functions on vectors of floats, without branches.
 *
 * At most 4 units in the last place (gelu 5) where the result is above 2e-38 in size; smaller
 * results may become 0. Without fused multiply-adds some functions lose more bits. Infinities, NaN
 * and zeros with their signs give what C's functions give.
 *
 * Rounding to a whole number is done by adding and taking away ROUNDER = 1.5 * 2^23: between the
 * two, the low bits of the sum hold the number as an integer. */
#ifndef TUTTI_DEVICE_CPU_TILE_MATH_H
#define TUTTI_DEVICE_CPU_TILE_MATH_H

#include <math.h>
#include <stdbool.h>

#include "device/cpu/vector.h"

#define ROUNDER 12582912.0f

#define S(x) vec_splat(x)
/* p * x + c */
#define HORNER(p, x, c) vec_fma(p, x, S(c))
#define HORNER_RELOAD(p, x, c) VEC_FMA_RELOAD(p, x, c)

/* 1 where m, else 0 */
VEC_INLINE vec vec_one(vmask m)
{
    return vec_select(m, S(1.0f), S(0.0f));
}

/* Of -0 and a bound of 0 it is 0. */
VEC_INLINE vec vec_clip(vec x, vec low, vec high)
{
    return vec_select(vec_le(x, low), low, vec_select(vec_gt(x, high), high, x));
}

/* Of -0 too it is 0: the maximum of x86 would leave it. */
VEC_INLINE vec vec_relu(vec x)
{
#if VEC_NEON
    return vec_at_least(x, 0.0f);
#elif defined(__AVX512F__)
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, S(0.0f), _CMP_NLE_UQ), x);
#else
    return (vec)((ivec)x & ~vec_le(x, S(0.0f)));
#endif
}

/* 2^(n + shift), n given as n + ROUNDER; the result's exponent must be that of a normal number. */
VEC_INLINE vec power_of_two(vec rounded, int shift)
{
    return (vec)(((uvec)rounded << 23) + ((uint32_t)(127 + shift) << 23));
}

/* `reload`: constants are loaded anew, except within longer functions, where the compiler has
 * enough to do with registers. */
#define EXP_STEP(p, x, c) (reload ? HORNER_RELOAD(p, x, c) : HORNER(p, x, c))

/* e^r for |r| <= ln 2 / 2 is 1 + r + r^2 q(r) */
VEC_INLINE vec exp_tail(vec r, bool reload)
{
    vec q = EXP_STEP(S(1.381432055e-03f), r, 8.368850686e-03f);
    q = EXP_STEP(q, r, 4.166840017e-02f);
    q = EXP_STEP(q, r, 1.666651964e-01f);
    return EXP_STEP(q, r, 4.999999404e-01f);
}

/* x = n ln 2 + r; gives n + ROUNDER. ln 2 in two parts: n times the first is exact. */
VEC_INLINE vec reduce_by_ln2(vec x, vec *ret_r)
{
    vec rounded = HORNER_RELOAD(x, S(1.44269504f), ROUNDER), n = rounded - ROUNDER;
    vec r = vec_fnma(n, S(0.693359375f), x);
    *ret_r = vec_fma(n, S(2.12194440e-4f), r);
    return rounded;
}

/* The same as ROUNDER, but the low bits hold n + 126: shifted to the exponent's place they are
 * 2^(n-1), and 0 for n = -126. */
#define HALF_POWER_ROUNDER (ROUNDER + 126.0f)
VEC_INLINE vec half_power_of_two(vec rounded)
{
    return (vec)((uvec)rounded << 23);
}

/* e^x = 2 e^r 2^(n-1), of `count` vectors: so n = 128 has its place, larger results become infinite
 * and n = -126 gives 0. 2 e^r for |r| <= ln 2 / 2 to 1 unit.
 *
 * One step of all vectors after the other: a CPU looks ahead over fewer operations than one vector
 * needs, so what can run at once has to stand together. */
#if VEC_NEON
enum { EXP_TOGETHER = 8 };
#else
enum { EXP_TOGETHER = 1 }; /* wide vectors, few registers, and a CPU that looks further */
#endif
#define EACH_OF(count) VEC_UNROLL for (int i = 0; i < (count); i++)
VEC_INLINE void exp_side_by_side(vec *x, int count, bool reload)
{
    vec rounded[EXP_TOGETHER], p[EXP_TOGETHER];
    EACH_OF(count) x[i] = vec_at_most(x[i], 89.0f);
    EACH_OF(count) x[i] = vec_at_least(x[i], -87.4f);
    EACH_OF(count) rounded[i] = EXP_STEP(x[i], S(1.44269504f), HALF_POWER_ROUNDER);
    EACH_OF(count) p[i] = rounded[i] - HALF_POWER_ROUNDER; /* n */
    EACH_OF(count) x[i] = vec_fnma(p[i], S(0.693359375f), x[i]);
    EACH_OF(count) x[i] = vec_fma(p[i], S(2.12194440e-4f), x[i]); /* r */
    EACH_OF(count) rounded[i] = half_power_of_two(rounded[i]);
    EACH_OF(count) p[i] = EXP_STEP(S(1.662495546e-02f), x[i], 8.378110081e-02f);
    EACH_OF(count) p[i] = EXP_STEP(p[i], x[i], 3.333423138e-01f);
    EACH_OF(count) p[i] = EXP_STEP(p[i], x[i], 9.999845624e-01f);
    EACH_OF(count) p[i] = EXP_STEP(p[i], x[i], 2.0f);
    EACH_OF(count) p[i] = EXP_STEP(p[i], x[i], 2.0f);
    EACH_OF(count) x[i] = p[i] * rounded[i];
}

VEC_INLINE vec vec_exp(vec x)
{
    exp_side_by_side(&x, 1, true);
    return x;
}

/* The same within a longer function. */
VEC_INLINE vec exp_within(vec x)
{
    exp_side_by_side(&x, 1, false);
    return x;
}

/* The same with one more term, for those who have little error to spend. */
VEC_INLINE vec exp_close(vec x)
{
    vec z = vec_at_least(vec_at_most(x, 89.0f), -87.4f);
    vec rounded = HORNER(z, S(1.44269504f), HALF_POWER_ROUNDER), n = rounded - HALF_POWER_ROUNDER;
    vec r = vec_fma(n, S(2.12194440e-4f), vec_fnma(n, S(0.693359375f), z));
    return (vec_fma(exp_tail(r, false), r * r, r) + 1.0f) * 2.0f * half_power_of_two(rounded);
}

/* e^x - 1 = 2 (2^(n-1) (e^r - 1) + (2^(n-1) - 1/2)) */
VEC_INLINE vec vec_expm1(vec x)
{
    vec r, rounded = reduce_by_ln2(vec_at_most(vec_at_least(x, -25.0f), 89.0f), &r);
    vec scale = power_of_two(rounded, -1), small = vec_fma(exp_tail(r, true), r * r, r);
    vec y = vec_fma(scale, small, scale - 0.5f);
    return vec_sign_zero(vec_select(vec_eq(rounded, S(ROUNDER)), small, y + y), x);
}

/* log of m 2^k (1 + c), f = m - 1, m in [sqrt 1/2, sqrt 2): with s = f / (2 + f),
 * log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)). c corrects the argument's rounding. */
VEC_INLINE vec log_parts(vec f, vec k, vec c)
{
    vec s = f / (f + 2.0f), z = s * s, w = z * z;
    vec odd = w * HORNER(w, S(0.24279078841f), 0.40000972152f);
    vec even = z * HORNER(w, S(0.28498786688f), 0.66666662693f);
    vec half = f * f * 0.5f;
    vec low = vec_fma(s, half + (odd + even), vec_fma(k, S(9.0580006145e-06f), c));
    return vec_fma(k, S(6.9313812256e-01f), f - (half - low));
}

/* bits of x = m 2^k */
VEC_INLINE vec split_exponent(vec x, vec *ret_k)
{
    ivec bits = (ivec)((uvec)x + (0x3f800000u - 0x3f3504f3u)), k = (bits >> 23) - 127;
    *ret_k = __builtin_convertvector(k, vec);
    return (vec)((bits & 0x007fffff) + 0x3f3504f3);
}

VEC_INLINE vec vec_log(vec x)
{
    vmask tiny = vec_lt(x, S(0x1p-126f));
    vec k, m = split_exponent(vec_select(tiny, x * 0x1p23f, x), &k);
    vec y = log_parts(m - 1.0f, k - vec_select(tiny, S(23.0f), S(0.0f)), S(0.0f));
    y = vec_select(vec_eq(x, S(0.0f)), S(-INFINITY), y);
    y = vec_select(vec_lt(x, S(0.0f)), S(NAN), y);
    return vec_select(vec_lt(x, S(INFINITY)), y, x); /* infinity and NaN: themselves */
}

/* u = 1 + x rounded; what rounding lost, relative to u, is c. */
VEC_INLINE vec vec_log1p(vec x)
{
    vec u = x + 1.0f, k;
    vec lost = vec_select(vec_gt(x, S(1.0f)), 1.0f - (u - x), x - (u - 1.0f));
    vec m = split_exponent(u, &k);
    vec y = log_parts(m - 1.0f, k, lost / u);
    y = vec_select(vec_eq(u, S(1.0f)), x, y); /* also keeps -0 and denormal numbers */
    y = vec_select(vec_eq(x, S(-1.0f)), S(-INFINITY), y);
    y = vec_select(vec_lt(x, S(-1.0f)), S(NAN), y);
    return vec_select(vec_lt(x, S(INFINITY)), y, x);
}

/* With |x| = n ln 2 / 2 + r and u = (e^(2|x|) - 1) / 2 = 2^(n-1) (e^(2r) - 1) + (2^(n-1) - 1/2):
 * tanh |x| = u / (u + 1). */
VEC_INLINE vec vec_tanh(vec x)
{
    vec a = vec_at_most(vec_abs(x), 10.0f);
    vec rounded = HORNER_RELOAD(a, S(2.88539008f), HALF_POWER_ROUNDER),
        n = rounded - HALF_POWER_ROUNDER;
    vec r = vec_fnma(n, S(0.34657359f), a);
    vec p = HORNER_RELOAD(S(8.884806186e-02f), r, 2.677305639e-01f);
    p = HORNER_RELOAD(p, r, 6.666752100e-01f);
    p = HORNER_RELOAD(p, r, 1.333323479f);
    p = HORNER_RELOAD(p, r, 1.999999881f);
    p = HORNER_RELOAD(p, r, 2.0f);
    vec scale = half_power_of_two(rounded);
    vec u = vec_fma(scale, p * r, scale - 0.5f);
    return vec_copysign(u / (u + 1.0f), x);
}

/* e^-x may be infinite: then the result is 0. */
VEC_INLINE vec vec_sigmoid(vec x)
{
    return 1.0f / (vec_exp(-x) + 1.0f);
}

VEC_INLINE vec vec_softplus(vec x)
{
    return vec_at_least(x, 0.0f) + vec_log1p(exp_within(-vec_abs(x)));
}

/* |x| <= 0.93: odd polynomial; beyond: 1 - e^(polynomial). */
VEC_INLINE vec vec_erf(vec x)
{
    vec t = vec_at_most(vec_abs(x), 4.0f), s = t * t;
    vec r = HORNER(S(-1.72853470e-5f), t, 3.83197126e-4f);
    r = vec_fma(r, s, HORNER(S(-3.88396438e-3f), t, 2.42546219e-2f));
    r = HORNER(r, t, -1.06777877e-1f);
    r = HORNER(r, t, -6.34846687e-1f);
    r = HORNER(r, t, -1.28717512e-1f);
    r = vec_fma(r, t, -t);
    vec far = vec_copysign(1.0f - exp_within(r), x);
    vec p = HORNER(S(-5.96761703e-4f), s, 4.99119423e-3f);
    p = HORNER(p, s, -2.67681349e-2f);
    p = HORNER(p, s, 1.12819925e-1f);
    p = HORNER(p, s, -3.76125336e-1f);
    p = HORNER(p, s, 1.28379166e-1f);
    vec y = vec_select(vec_gt(t, S(0.927734375f)), far, vec_fma(p, x, x));
    return vec_select(vec_ne(x, x), x, y);
}

/* P(-a) e^(a^2 / 2) for a in [0, 14], P the normal distribution function: t times a polynomial in
 * t = 1 / (1 + 0.35 a), relative error 1.8e-8. `lost` is what t lacks by rounding, relative to t;
 * the result lacks 1 to 2.3 times as much. */
VEC_INLINE vec scaled_tail(vec a, vec *ret_lost)
{
    vec d = HORNER(a, S(0.35f), 1.0f), t = 1.0f / d;
    *ret_lost = vec_fnma(vec_fma(a, S(0.35f), 1.0f - d), t, vec_fnma(d, t, S(1.0f)));
    vec q = HORNER(S(0.00431383355f), t, -0.0519239232f);
    q = HORNER(q, t, 0.195812404f);
    q = HORNER(q, t, -0.322266489f);
    q = HORNER(q, t, 0.212119356f);
    q = HORNER(q, t, -0.050089024f);
    q = HORNER(q, t, 0.114284672f);
    q = HORNER(q, t, 0.118080713f);
    q = HORNER(q, t, 0.140056133f);
    return HORNER(q, t, 0.139612302f) * t;
}

/* x P(x), for x < 0 without cancellation, and of 0 with its sign; x^2 / 2 in two parts. */
VEC_INLINE vec vec_gelu(vec x)
{
    vec a = vec_at_most(vec_abs(x), 14.0f), half = a * 0.5f, s = half * a;
    vec lost, tail = vec_copysign(a, x) * scaled_tail(a, &lost) * exp_close(-s);
    tail = vec_fma(tail, vec_fma(lost, S(1.74f), vec_fnma(half, a, s)), tail);
    vec y = vec_select(vec_le(x, S(0.0f)), tail, x - tail);
    return vec_select(vec_lt(x, S(-13.1f)), S(-0.0f), y);
}

/* P(x) + x p(x), p(x) = e^(-x^2 / 2) / sqrt(2 pi): d or 1 - d with d = P(-|x|) - |x| p(x). */
VEC_INLINE vec vec_gelu_slope(vec x)
{
    vec a = vec_at_most(vec_abs(x), 14.0f);
    vec lost, d = vec_fnma(a, S(3.9894228e-1f), scaled_tail(a, &lost)) * exp_within(a * a * -0.5f);
    return vec_select(vec_lt(x, S(0.0f)), d, 1.0f - d);
}

VEC_INLINE vec vec_silu(vec x)
{
    return x / (vec_exp(-x) + 1.0f);
}

VEC_INLINE vec vec_hard_swish(vec x)
{
    return x * (vec_clip(x + 3.0f, S(0.0f), S(6.0f)) / 6.0f);
}

/* x n / (n + 2), n = e^x (e^x + 2), written with a = e^|x| and 1 / a: for x > 0 the fraction is
 * (1 + 2/a) / (1 + 2/a + 2/a^2), else (2 + 1/a) / (2 + 1/a + 2 a). */
VEC_INLINE vec vec_mish(vec x)
{
    vec a = exp_close(vec_abs(x)), e = 1.0f / a, left = e + 2.0f, right = e * 2.0f + 1.0f;
    vec far = left / (left + a * 2.0f), near = right / vec_fma(e * 2.0f, e, right);
    return x * vec_select(vec_gt(x, S(0.0f)), near, far);
}

VEC_INLINE vec vec_gelu_tanh(vec x)
{
    vec u = (x + x * x * x * 0.044715f) * 0.79788456f;
    return x * 0.5f * (vec_tanh(u) + 1.0f);
}

/* x - n pi/2 for |n| < 2^13. n times a part but the last is exact, fused or because the part has 11
 * bits; and each difference is exact where it is small. */
VEC_INLINE vec reduce_by_half_pi(vec x, vec n)
{
#if VEC_FUSED
    vec r = vec_fnma(n, S(1.57079601287841797f), x);
    r = vec_fnma(n, S(3.1391647326017846353e-07f), r);
    return vec_fnma(n, S(5.390302529957764765e-15f), r);
#else
    vec r = x - n * 0x1.92p+0f;
    r = r - n * 0x1.fb4p-12f;
    r = r - n * 0x1.444p-24f;
    r = r - n * 0x1.68cp-39f;
    return r - n * 6.1232339957367660e-17f;
#endif
}

/* sin and cos of the rest r of |x| <= TRIG_MOST, x = n pi/2 + r; gives n + ROUNDER. */
#define TRIG_MOST 8192.0f
VEC_INLINE vec trig_parts(vec x, vec *ret_sin, vec *ret_cos)
{
    vec rounded = HORNER(x, S(0.636619772f), ROUNDER), n = rounded - ROUNDER;
    vec r = reduce_by_half_pi(x, n);
    vec z = r * r;
    vec s = HORNER(HORNER(S(2.86567956e-6f), z, -1.98559923e-4f), z, 8.33338592e-3f);
    vec cube = HORNER(z, r, 0.0f); /* 0, never -0: of r = -0 the sum is -0 then */
    *ret_sin = vec_fma(HORNER(s, z, -1.66666672e-1f), cube, r);
    vec c = HORNER(HORNER(S(2.44677067e-5f), z, -1.38877297e-3f), z, 4.16666567e-2f);
    *ret_cos = HORNER(HORNER(c, z, -0.5f), z, 1.0f);
    return rounded;
}

/* sin (quarter 0) or cos (quarter 1) of |x| <= TRIG_MOST. */
VEC_INLINE vec vec_trig(vec x, int quarter)
{
    vec s, c;
    ivec quadrant = (ivec)trig_parts(x, &s, &c) + quarter;
    /* The mask is made by integers: all ones where the quadrant is odd. */
    ivec odd = -(quadrant & 1);
    ivec y = ((ivec)c & odd) | ((ivec)s & ~odd);
    return (vec)(y ^ (ivec)((uvec)(quadrant & 2) << 30));
}

VEC_INLINE vec vec_sin(vec x)
{
    return vec_trig(x, 0);
}

VEC_INLINE vec vec_cos(vec x)
{
    return vec_trig(x, 1);
}

#endif
