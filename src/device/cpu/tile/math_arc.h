/* math_arc.h: tangent, inverse trigonometric and hyperbolic functions on vectors of floats; see
 * math.h for what it promises. */
#ifndef TUTTI_DEVICE_CPU_TILE_MATH_ARC_H
#define TUTTI_DEVICE_CPU_TILE_MATH_ARC_H

#include "device/cpu/tile/math.h"

#define HALF_PI 1.57079637f
#define HALF_PI_REST -4.37113883e-8f

/* Of |x| <= TRIG_MOST: sin / cos of the rest, or -cos / sin. */
VEC_INLINE vec vec_tan(vec x)
{
    vec s, c;
    ivec odd = -((ivec)trig_parts(x, &s, &c) & 1);
    vec over = (vec)(((ivec)-c & odd) | ((ivec)s & ~odd));
    return over / (vec)(((ivec)s & odd) | ((ivec)c & ~odd));
}

/* s + tail: asin of |x| <= 1/2, s = |x|, or (pi/2 - asin |x|) / 2, s = sqrt((1 - |x|) / 2). */
VEC_INLINE vec arc_parts(vec a, vmask far, vec *ret_tail)
{
    vec z = vec_select(far, (1.0f - a) * 0.5f, a * a), s = vec_select(far, vec_sqrt(z), a);
    vec p = HORNER(S(3.369084720e-2f), z, 1.714923836e-2f);
    p = HORNER(p, z, 3.110066274e-2f);
    p = HORNER(p, z, 4.459940153e-2f);
    p = HORNER(p, z, 7.500094543e-2f);
    *ret_tail = s * z * HORNER(p, z, 1.666666634e-1f);
    return s;
}

VEC_INLINE vec vec_asin(vec x)
{
    vec a = vec_abs(x), tail;
    vmask far = vec_gt(a, S(0.5f));
    vec s = arc_parts(a, far, &tail), twice = s + s, rest = HALF_PI - twice;
    vec lost = (HALF_PI - rest) - twice + (HALF_PI_REST - (tail + tail));
    return vec_copysign(vec_select(far, rest + lost, s + tail), x);
}

VEC_INLINE vec vec_acos(vec x)
{
    vec a = vec_abs(x), tail;
    vmask far = vec_gt(a, S(0.5f));
    vec y = arc_parts(a, far, &tail) + tail, twice = y + y;
    vec beyond = 2 * HALF_PI - (twice - 2 * HALF_PI_REST);
    vec near = HALF_PI - (vec_copysign(y, x) - HALF_PI_REST);
    return vec_select(far, vec_select(vec_lt(x, S(0.0f)), beyond, twice), near);
}

/* atan |x| = b + atan t, t = (|x| - 1) / (|x| + 1) and b = pi/4, or t = -1 / |x| and b = pi/2, or
 * b = 0: |t| <= tan(pi/8). */
VEC_INLINE vec vec_atan(vec x)
{
    vec a = vec_abs(x);
    vmask middle = vec_gt(a, S(0.414213562f)), far = vec_gt(a, S(2.41421356f));
    vec over = vec_select(far, S(-1.0f), vec_select(middle, a - 1.0f, a));
    vec under = vec_select(far, a, vec_select(middle, a + 1.0f, S(1.0f)));
    vec high = vec_select(far, S(HALF_PI), vec_select(middle, S(0.5f * HALF_PI), S(0.0f)));
    vec low = vec_select(far, S(HALF_PI_REST), vec_select(middle, S(0.5f * HALF_PI_REST), S(0.0f)));
    vec t = over / under, z = t * t;
    vec p = HORNER(S(-6.447741047e-2f), z, 1.074246685e-1f);
    p = HORNER(p, z, -1.426383848e-1f);
    p = HORNER(p, z, 1.999953710e-1f);
    p = HORNER(p, z, -3.333333175e-1f);
    return vec_copysign(high + (t + vec_fma(z * t, p, low)), x);
}

/* e^|x| / 2, also where e^|x| is too large. */
VEC_INLINE vec half_exp(vec a)
{
    vec root = exp_close(a * 0.5f);
    return root * 0.5f * root;
}

/* |x| <= 1: x and x^3 times a polynomial; beyond: e/2 - 1/(2e). */
VEC_INLINE vec vec_sinh(vec x)
{
    vec a = vec_abs(x), e = half_exp(a), z = a * a;
    vec p = HORNER(S(2.80888e-6f), z, 1.98392e-4f);
    p = HORNER(p, z, 8.33333970e-3f);
    p = HORNER(p, z, 1.66666667e-1f);
    vec near = vec_fma(z * a, p, a);
    return vec_copysign(vec_select(vec_gt(a, S(1.0f)), e - 0.25f / e, near), x);
}

VEC_INLINE vec vec_cosh(vec x)
{
    vec e = half_exp(vec_abs(x));
    return e + 0.25f / e;
}

#endif
