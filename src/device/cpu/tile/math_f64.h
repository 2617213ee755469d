/* math_f64.h: elementary functions on vectors of doubles, without branches, where multiply-adds are
 * fused (VEC_FUSED); elsewhere C's functions are called.
 *
 * At most 2 units in the last place (sigmoid and tan 3, gelu 6).
 * Infinities, NaN, zeros with their signs and numbers below the normal ones give what C's functions
 * give.
 *
 * A sum a + b of numbers that cannot be rounded is kept as two: its rounded value and what that
 * lacks. Rounding to a whole number is done by adding and taking away D_ROUNDER. */
#ifndef TUTTI_DEVICE_CPU_TILE_MATH_F64_H
#define TUTTI_DEVICE_CPU_TILE_MATH_F64_H

#include <math.h>
#include <stdbool.h>

#include "device/cpu/vector_f64.h"

#define D_ROUNDER 0x1.8p52
#define D(x) dvec_splat(x)
#define D_LN2 0x1.62e42fefa39efp-1
#define D_LN2_REST 0x1.abc9e3b39803fp-56
#define D_LN2_SHORT 6.93147180369123816490e-01 /* 32 bits: whole multiples are exact */
#define D_LN2_SHORT_REST 1.90821492927058770002e-10
#define D_HALF_PI 0x1.921fb54442d18p+0
#define D_HALF_PI_REST 0x1.1a62633145c07p-54
#define D_HALF_PI_LAST -0x1.f1976b7ed8fbcp-110

#if defined(__clang__)
#define D_UNROLL _Pragma("clang loop unroll(full)")
#else
#define D_UNROLL _Pragma("GCC unroll 32")
#endif

/* Coefficients from the highest power down. */
VEC_INLINE dvec d_polynomial(const double *c, int count, dvec x)
{
    dvec p = D(c[0]);
    D_UNROLL for (int i = 1; i < count; i++) p = dvec_fma(p, x, D(c[i]));
    return p;
}
#define D_POLYNOMIAL(x, ...)                                                                       \
    __extension__({                                                                                \
        static const double terms[] = {__VA_ARGS__};                                               \
        d_polynomial(terms, (int)(sizeof terms / sizeof *terms), x);                               \
    })

/* e^r for |r| <= ln 2 / 2 is 1 + r + r^2 q(r) */
VEC_INLINE dvec d_exp_tail(dvec r)
{
    return D_POLYNOMIAL(r, 2.5100472505694996e-08, 2.7620201591031547e-07, 2.7557268276905696e-06,
                        2.4801521057868204e-05, 0.00019841269863171557, 0.0013888888917367081,
                        0.008333333333330039, 0.041666666666623824, 0.16666666666666669,
                        0.5000000000000001);
}

/* 2^shift e^(x + rest), x = n ln 2 + r. The power of 2 is two factors, so that results above and
 * below the normal numbers come out too; n ln 2 loses nothing of x. */
VEC_INLINE dvec d_exp_scaled(dvec x, dvec rest, int shift)
{
    x = dvec_at_least(dvec_at_most(x, 711.0), -746.0);
    dvec n = dvec_fma(x, D(0x1.71547652b82fep+0), D(D_ROUNDER)) - D_ROUNDER;
    dvec near = dvec_fnma(n, D(D_LN2), x), low = dvec_fnma(n, D(D_LN2_REST), rest);
    dvec r = near + low, lost = (near - r) + low;
    dvec y = r + dvec_fma(d_exp_tail(r), r * r, lost) + 1.0;
    dvec half = dvec_fma(n, D(0.5), D(D_ROUNDER + 1023)), other = n - (half - (D_ROUNDER + 1023));
    other = other + (D_ROUNDER + 1023 + shift);
    return y * (dvec)((duvec)half << 52) * (dvec)((duvec)other << 52);
}

VEC_INLINE dvec dvec_exp(dvec x)
{
    return d_exp_scaled(x, D(0.0), 0);
}

/* e^x - 1, twice: the rounded result and what it lacks. With h = 2^(n-1) and e^r = 1 + r + t it is
 * 2 ((h - 1/2) + h r + h t); where n = 0 it is r + t. */
VEC_INLINE dvec d_expm1_parts(dvec x, dvec *ret_lost)
{
    x = dvec_at_most(dvec_at_least(x, -40.0), 710.0);
    dvec rounded = dvec_fma(x, D(0x1.71547652b82fep+0), D(D_ROUNDER + 1022));
    dvec n = rounded - (D_ROUNDER + 1022), h = (dvec)((duvec)rounded << 52);
    dvec near = dvec_fnma(n, D(D_LN2), x), r = dvec_fnma(n, D(D_LN2_REST), near);
    dvec t = dvec_fma(d_exp_tail(r), r * r, dvec_fnma(n, D(D_LN2_REST), near - r));
    dvec base = h - 0.5, step = h * r, sum = base + step;
    dvec low = dvec_fma(h, t, (base - sum) + step), y = sum + low, small = r + t;
    dmask none = dvec_eq(n, D(0.0));
    *ret_lost = dvec_select(none, (r - small) + t, ((sum - y) + low) * 2.0);
    return dvec_select(none, small, y + y);
}

VEC_INLINE dvec dvec_expm1(dvec x)
{
    dvec lost;
    return dvec_copysign(d_expm1_parts(x, &lost), x);
}

/* |x| of a normal number is m 2^k, m in [sqrt 1/2, sqrt 2). */
VEC_INLINE dvec d_split(dvec x, dvec *ret_k)
{
    duvec bits = (duvec)x + (UINT64_C(0x3ff0000000000000) - UINT64_C(0x3fe6a09e667f3bcd));
    *ret_k = (dvec)((bits >> 52 & 0x7ff) | UINT64_C(0x4330000000000000)) - (0x1p52 + 1023);
    return (dvec)((bits & UINT64_C(0x000fffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd));
}

/* log of m 2^k (1 + c), f = m - 1: with s = f / (2 + f),
 * log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)). c corrects the argument's rounding. */
VEC_INLINE dvec d_log_parts(dvec f, dvec k, dvec c)
{
    dvec s = f / (f + 2.0), z = s * s, half = f * f * 0.5;
    dvec tail = z * D_POLYNOMIAL(z, 1.479819860511658591e-01, 1.531383769920937332e-01,
                                 1.818357216161805012e-01, 2.222219843214978396e-01,
                                 2.857142874366239149e-01, 3.999999999940941908e-01,
                                 6.666666666666735130e-01);
    dvec low = dvec_fma(s, half + tail, dvec_fma(k, D(D_LN2_SHORT_REST), c));
    return dvec_fma(k, D(D_LN2_SHORT), f - (half - low));
}

VEC_INLINE dvec dvec_log(dvec x)
{
    dmask tiny = dvec_lt(x, D(0x1p-1022));
    dvec k, m = d_split(dvec_select(tiny, x * 0x1p54, x), &k);
    dvec y = d_log_parts(m - 1.0, k - dvec_select(tiny, D(54.0), D(0.0)), D(0.0));
    y = dvec_select(dvec_eq(x, D(0.0)), D(-(double)INFINITY), y);
    y = dvec_select(dvec_lt(x, D(0.0)), D((double)NAN), y);
    return dvec_select(dvec_lt(x, D((double)INFINITY)), y, x); /* infinity and NaN: themselves */
}

/* u = 1 + x rounded; what rounding lost, relative to u, is c. */
VEC_INLINE dvec dvec_log1p(dvec x)
{
    dvec u = x + 1.0, k;
    dvec lost = dvec_select(dvec_gt(x, D(1.0)), 1.0 - (u - x), x - (u - 1.0));
    dvec m = d_split(u, &k);
    dvec y = d_log_parts(m - 1.0, k, lost / u);
    y = dvec_select(dvec_eq(u, D(1.0)), x, y); /* also keeps -0 and denormal numbers */
    y = dvec_select(dvec_eq(x, D(-1.0)), D(-(double)INFINITY), y);
    y = dvec_select(dvec_lt(x, D(-1.0)), D((double)NAN), y);
    return dvec_select(dvec_lt(x, D((double)INFINITY)), y, x);
}

/* With e = e^(2|x|) - 1, tanh |x| = e / (e + 2); what e and e + 2 lack is made good. */
VEC_INLINE dvec dvec_tanh(dvec x)
{
    dvec a = dvec_at_most(dvec_abs(x), 22.0), lost, e = d_expm1_parts(a + a, &lost);
    dvec d = e + 2.0, back = d - e, low = (e - (d - back)) + (2.0 - back) + lost;
    dvec y = e / d, rest = dvec_fnma(y, low, dvec_fnma(y, d, e) + lost);
    /* 1 / d needs few bits here, and of a tiny x the rest is rounding alone. */
    y = dvec_select(dvec_lt(a, D(0x1p-500)), a, y + rest / d);
    return dvec_copysign(y, x);
}

VEC_INLINE dvec dvec_sigmoid(dvec x)
{
    dvec e = dvec_exp(-dvec_abs(x));
    return dvec_select(dvec_lt(x, D(0.0)), e, D(1.0)) / (e + 1.0);
}

VEC_INLINE dvec dvec_softplus(dvec x)
{
    return dvec_at_least(x, 0.0) + dvec_log1p(dvec_exp(-dvec_abs(x)));
}

VEC_INLINE dvec dvec_silu(dvec x)
{
    dvec e = dvec_exp(-dvec_abs(x));
    return x * dvec_select(dvec_lt(x, D(0.0)), e, D(1.0)) / (e + 1.0);
}

/* As vec_mish: the fraction is n / (n + 2), n = e^x (e^x + 2), divided by e^(2x) for x > 0. */
VEC_INLINE dvec dvec_mish(dvec x)
{
    dvec e = dvec_exp(-dvec_abs(x));
    dmask positive = dvec_gt(x, D(0.0));
    dvec n = dvec_select(positive, e * 2.0 + 1.0, e * (e + 2.0));
    return x * n / (n + dvec_select(positive, e * e * 2.0, D(2.0)));
}

/* erfc(a) e^(a^2) for a in [0, 28]: a polynomial in (a - k) / (a + k), divided by 1 + 2 a. */
VEC_INLINE dvec d_scaled_tail(dvec a)
{
    dvec t = (a - 3.75) / (a + 3.75);
    dvec p = D_POLYNOMIAL(t, 5.575074946866084e-09, 3.076393073911127e-08, -2.4941353445137014e-09,
                          -2.587734011406184e-07, -2.576492985405016e-08, 1.7612443764776122e-06,
                          -9.950742322106513e-07, -1.1454171325540815e-05, 2.2393200961623614e-05,
                          5.1654215116215934e-05, -0.00029015641314069854, 0.00029371215741018884,
                          0.0017556262286830561, -0.009746579295238027, 0.028362277383016166,
                          -0.05869339861557502, 0.09230432116225266, -0.10880393014045737,
                          0.08227673849009999, 0.0035854154854395703, -0.14024059858554663,
                          1.2375126308378277);
    return p / (a * 2.0 + 1.0);
}

/* erf of x in [-1, 1] is x + x times this. */
VEC_INLINE dvec d_error_tail(dvec x)
{
    return D_POLYNOMIAL(x * x, -7.795898827002142e-10, 1.3720064546777686e-08,
                        -1.6208483801871705e-07, 1.6447424703317362e-06, -1.492473690741966e-05,
                        0.00012055294904839707, -0.0008548325975389692, 0.0052239776071164225,
                        -0.02686617064323777, 0.11283791670945006, -0.37612638903183543,
                        0.12837916709551256);
}

VEC_INLINE dvec dvec_erf(dvec x)
{
    dvec a = dvec_at_most(dvec_abs(x), 6.0);
    dvec far = dvec_fnma(d_scaled_tail(a), dvec_exp(-(a * a)), D(1.0));
    dvec y = dvec_select(dvec_gt(a, D(1.0)), far, dvec_fma(d_error_tail(a), a, a));
    return dvec_copysign(y, x);
}

/* e^(-a^2 / 2), the square in two parts. */
VEC_INLINE dvec d_bell(dvec a)
{
    dvec half = a * 0.5, s = half * a;
    return d_exp_scaled(-s, -dvec_fma(half, a, -s), 0);
}

/* x P(x), P the normal distribution function: for x < 0 without cancellation. Near 0 by erf, which
 * has less error. */
VEC_INLINE dvec dvec_gelu(dvec x)
{
    dvec a = dvec_at_most(dvec_abs(x), 39.0), half = x * 0.5, z = x * M_SQRT1_2;
    dvec tail = dvec_copysign(a, x) * (d_scaled_tail(a * M_SQRT1_2) * 0.5) * d_bell(a);
    dvec near = dvec_fma(half, dvec_fma(d_error_tail(z), z, z), half);
    dvec y = dvec_select(dvec_gt(x, D(0.0)), x - tail, tail);
    return dvec_select(dvec_lt(a, D(0.75)), dvec_copysign(near, x), y);
}

/* P(x) + x p(x), p the density: d or 1 - d with d = P(-|x|) - |x| p(x). */
VEC_INLINE dvec dvec_gelu_slope(dvec x)
{
    dvec a = dvec_at_most(dvec_abs(x), 39.0);
    dvec d = dvec_fnma(a, D(0.39894228040143267794), d_scaled_tail(a * M_SQRT1_2) * 0.5);
    d = d * d_bell(a);
    return dvec_select(dvec_lt(x, D(0.0)), d, 1.0 - d);
}

VEC_INLINE dvec dvec_gelu_tanh(dvec x)
{
    dvec u = (x + x * x * x * 0.044715) * 0.79788456080286535588;
    return x * 0.5 * (dvec_tanh(u) + 1.0);
}

/* sin and cos of the rest r of |x| <= D_TRIG_MOST, x = n pi/2 + r; n is added to D_ROUNDER. Three
 * parts of pi/2 have 159 bits, so the 53 of r are good where x is next to a multiple, too. */
#define D_TRIG_MOST 0x1p30
VEC_INLINE dvec d_trig_parts(dvec x, dvec *ret_sin, dvec *ret_cos)
{
    dvec rounded = dvec_fma(x, D(0.63661977236758134308), D(D_ROUNDER)), n = rounded - D_ROUNDER;
    dvec near = dvec_fnma(n, D(D_HALF_PI), x); /* exact */
    dvec w = n * D_HALF_PI_REST, low = dvec_fnma(n, D(D_HALF_PI_REST), w);
    dvec r = near - w, back = r - near, lost = (near - (r - back)) - (w + back);
    lost = lost + dvec_fnma(n, D(D_HALF_PI_LAST), low);
    dvec z = r * r, cube = z * r;
    dvec p = D_POLYNOMIAL(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08,
                          2.75573137070700676789e-06, -1.98412698298579493134e-04,
                          8.33333333332248946124e-03);
    dvec inner = dvec_fnma(z, dvec_fnma(p, cube, lost * 0.5), lost);
    dvec s = r + dvec_fma(cube, D(-1.66666666666666324348e-01), inner);
    dvec q = D_POLYNOMIAL(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09,
                          -2.75573143513906633035e-07, 2.48015872894767294178e-05,
                          -1.38888888888741095749e-03, 4.16666666666666019037e-02);
    dvec half = z * 0.5, c = 1.0 - half;
    *ret_cos = c + (((1.0 - c) - half) + dvec_fma(z * z, q, -(r * lost)));
    *ret_sin = dvec_copysign(s, r); /* of -0 too */
    return rounded;
}

VEC_INLINE dvec d_where_bits(divec mask, dvec yes, dvec no)
{
    return (dvec)(((divec)yes & mask) | ((divec)no & ~mask));
}

/* sin (quarter 0) or cos (quarter 1) */
VEC_INLINE dvec d_trig(dvec x, int quarter)
{
    dvec s, c;
    divec quadrant = (divec)d_trig_parts(x, &s, &c) + quarter;
    dvec y = d_where_bits(-(quadrant & 1), c, s);
    return (dvec)((divec)y ^ (divec)((duvec)(quadrant & 2) << 62));
}

VEC_INLINE dvec d_sin(dvec x)
{
    return d_trig(x, 0);
}

VEC_INLINE dvec d_cos(dvec x)
{
    return d_trig(x, 1);
}

VEC_INLINE dvec d_tan(dvec x)
{
    dvec s, c;
    divec odd = -((divec)d_trig_parts(x, &s, &c) & 1);
    return d_where_bits(odd, -c, s) / d_where_bits(odd, s, c);
}

/* s + tail: asin of |x| <= 1/2, s = |x|, or (pi/2 - asin |x|) / 2, s = sqrt((1 - |x|) / 2). */
VEC_INLINE dvec d_arc_parts(dvec a, dmask far, dvec *ret_tail)
{
    dvec z = dvec_select(far, (1.0 - a) * 0.5, a * a), s = dvec_select(far, dvec_sqrt(z), a);
    dvec p = D_POLYNOMIAL(z, 0.028757851367421566, -0.014851887071247204, 0.01740087944269402,
                          0.005457506718640358, 0.01032281435018578, 0.011479177415184906,
                          0.013971212973552933, 0.017352392720869973, 0.02237217294214989,
                          0.030381944138531247, 0.04464285714635543, 0.07499999999998433,
                          0.16666666666666669);
    *ret_tail = s * z * p;
    return s;
}

VEC_INLINE dvec dvec_asin(dvec x)
{
    dvec a = dvec_abs(x), tail;
    dmask far = dvec_gt(a, D(0.5));
    dvec s = d_arc_parts(a, far, &tail), twice = s + s, rest = D_HALF_PI - twice;
    dvec lost = (D_HALF_PI - rest) - twice + (D_HALF_PI_REST - (tail + tail));
    return dvec_copysign(dvec_select(far, rest + lost, s + tail), x);
}

VEC_INLINE dvec dvec_acos(dvec x)
{
    dvec a = dvec_abs(x), tail;
    dmask far = dvec_gt(a, D(0.5));
    dvec y = d_arc_parts(a, far, &tail) + tail, twice = y + y;
    dvec beyond = 2 * D_HALF_PI - (twice - 2 * D_HALF_PI_REST);
    dvec near = D_HALF_PI - (dvec_copysign(y, x) - D_HALF_PI_REST);
    return dvec_select(far, dvec_select(dvec_lt(x, D(0.0)), beyond, twice), near);
}

/* atan |x| = b + atan t, t = (|x| - 1) / (|x| + 1) and b = pi/4, or t = -1 / |x| and b = pi/2, or
 * b = 0: |t| <= tan(pi/8). */
VEC_INLINE dvec dvec_atan(dvec x)
{
    dvec a = dvec_abs(x);
    dmask middle = dvec_gt(a, D(0.41421356237309503)), far = dvec_gt(a, D(2.4142135623730949));
    dvec over = dvec_select(far, D(-1.0), dvec_select(middle, a - 1.0, a));
    dvec under = dvec_select(far, a, dvec_select(middle, a + 1.0, D(1.0)));
    dvec high = dvec_select(far, D(D_HALF_PI), dvec_select(middle, D(0.5 * D_HALF_PI), D(0.0)));
    dvec low =
        dvec_select(far, D(D_HALF_PI_REST), dvec_select(middle, D(0.5 * D_HALF_PI_REST), D(0.0)));
    dvec t = over / under, z = t * t;
    dvec p = D_POLYNOMIAL(z, 0.016258132064979208, -0.034545610104858494, 0.045506220391755364,
                          -0.052302411507894, 0.05878900032342983, -0.06666422364033206,
                          0.07692296234491514, -0.09090908748635232, 0.1111111110505757,
                          -0.14285714285658824, 0.199999999999998, -0.3333333333333333);
    return dvec_copysign(high + (t + dvec_fma(z * t, p, low)), x);
}

/* |x| <= 1: x and x^3 times a polynomial; beyond: e/2 - 1/(2e), e/2 also where e is too large. */
VEC_INLINE dvec dvec_sinh(dvec x)
{
    dvec a = dvec_abs(x), e = d_exp_scaled(a, D(0.0), -1), z = a * a;
    dvec p = D_POLYNOMIAL(z, 7.746178593018827e-13, 1.6057679623801638e-10, 2.5052117695907823e-08,
                          2.7557319191381816e-06, 0.00019841269841324198, 0.008333333333333299,
                          0.16666666666666666);
    dvec near = dvec_fma(z * a, p, a);
    return dvec_copysign(dvec_select(dvec_gt(a, D(1.0)), e - 0.25 / e, near), x);
}

VEC_INLINE dvec dvec_cosh(dvec x)
{
    dvec e = d_exp_scaled(dvec_abs(x), D(0.0), -1);
    return e + 0.25 / e;
}

/* log of a normal x > 0 as two numbers, with 2^-64 of it for error: x = m 2^k, s = (m-1) / (m+1),
 * log m = 2 s + 2/3 s^3 + s^5 R(s^2), of which the first two terms are in two parts. */
VEC_INLINE dvec d_log_twice(dvec x, dvec *ret_low)
{
    dvec k, m = d_split(x, &k), f = m - 1.0, d = m + 1.0, d_low = m - (d - 1.0), by = 1.0 / d;
    dvec s = f * by, s_low = dvec_fnma(s, d_low, dvec_fnma(s, d, f)) * by;
    dvec z = s * s, z_low = dvec_fma(s + s, s_low, dvec_fma(s, s, -z));
    dvec r = z * D_POLYNOMIAL(z, 0.11723454509771844, 0.11706209953550312, 0.13334805679298412,
                              0.1538459494439715, 0.18181818335562422, 0.22222222221655138,
                              0.2857142857142937, 0.4);
    dvec c = r + 0x1.5555555555555p-1,
         c_low = (0x1.5555555555555p-1 - c) + r + 0x1.5555555555555p-55;
    dvec cube = s * z, cube_low = dvec_fma(s_low, z, dvec_fma(s, z_low, dvec_fma(s, z, -cube)));
    dvec p = cube * c, p_low = dvec_fma(cube_low, c, dvec_fma(cube, c_low, dvec_fma(cube, c, -p)));
    dvec log_m = s + s + p, log_low = ((s + s) - log_m) + p + (p_low + (s_low + s_low));
    dvec whole = k * D_LN2_SHORT, sum = whole + log_m;
    dvec low = (whole - sum) + log_m + dvec_fma(k, D(D_LN2_SHORT_REST), log_low);
    dvec y = sum + low;
    *ret_low = (sum - y) + low;
    return y;
}

/* Where d_pow holds: a normal number, of which only a whole power is taken if it is negative. */
VEC_INLINE divec d_pow_holds(dvec a, dvec b)
{
    const dvec size = dvec_abs(a), power = dvec_abs(b);
    const divec all = {0};
    divec normal = (size >= 0x1p-1022) & (size <= 0x1.fffffffffffffp1023) & (power <= 0x1p50);
    return normal & ((a > (dvec)all) | (((power + 0x1p52) - 0x1p52) == power));
}

VEC_INLINE dvec d_pow(dvec a, dvec b)
{
    dvec low, high = d_log_twice(dvec_abs(a), &low), x = b * high;
    dvec rest = dvec_fma(b, low, dvec_fma(b, high, -x)); /* large where x is out of range */
    dvec y = d_exp_scaled(x, dvec_select(dvec_lt(dvec_abs(x), D(1000.0)), rest, D(0.0)), 0);
    divec odd = (divec)((duvec)(dvec_abs(b) + 0x1p52) << 63);
    return (dvec)((divec)y | (odd & (divec)a));
}

#endif
