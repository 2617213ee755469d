/* activation.h: activation functions of one double, where doubles are not done by vectors, and what
 * of them is said for vectors too. */
#ifndef TUTTI_DEVICE_CPU_TILE_ACTIVATION_H
#define TUTTI_DEVICE_CPU_TILE_ACTIVATION_H

#include "device/cpu/tile/math.h"
#include "device/cpu/vector_f64.h"

#define ROOT 0.79788456080286535588 /* sqrt(2 / pi) */

static inline double sigmoid(double x)
{
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* Far below 0 too, where e^-x is infinite. */
static inline double silu(double x)
{
    double e = exp(-fabs(x));
    return x * (x < 0 ? e : 1) / (1 + e);
}

static inline double softplus(double x)
{
    return (x > 0 || x != x ? x : 0) + log1p(exp(-fabs(x)));
}

static inline double mish(double x)
{
    double e = exp(-fabs(x)), n = x > 0 ? 1 + 2 * e : e * (e + 2);
    return x * n / (x > 0 ? n + 2 * e * e : n + 2);
}

/* Far below 0 nothing is left, also of -inf. */
static inline double gelu(double x)
{
    double above = erfc(-x * 0.70710678118654752440);
    return above == 0 ? -0.0 : 0.5 * x * above;
}

static inline double gelu_slope(double x)
{
    double above = 0.5 * erfc(-x * 0.70710678118654752440), bell = exp(-0.5 * x * x);
    return bell > 0 ? above + x * bell * (0.5 * ROOT) : copysign(above, x);
}

/* |x| times what of the label z the logit x is wrong about; see ops/network/sigmoid_cross_entropy.c
 */
static inline double wrong_part(double x, double z)
{
    double wrong = x > 0 ? 1 - z : z;
    return wrong == 0 ? 0 : fabs(x) * wrong;
}

static inline vec vec_wrong_part(vec x, vec z)
{
    vec wrong = vec_select(vec_gt(x, S(0.0f)), 1.0f - z, z);
    return vec_select(vec_eq(wrong, S(0.0f)), S(0.0f), vec_abs(x) * wrong);
}

static inline dvec dvec_wrong_part(dvec x, dvec z)
{
    dvec wrong = dvec_select(dvec_gt(x, dvec_splat(0.0)), 1.0 - z, z);
    return dvec_select(dvec_eq(wrong, dvec_splat(0.0)), dvec_splat(0.0), dvec_abs(x) * wrong);
}

#endif
