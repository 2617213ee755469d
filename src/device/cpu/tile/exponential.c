/* exponential.c: tile loops of exponential, logarithmic, trigonometric and error functions. */
#include "device/cpu/tile/loops_f64.h"
#include "device/cpu/tile/math_arc.h"

TILE_VECTORS_1(exponential, vec_exp(x), dvec_exp(x), exp(x))
TILE_VECTORS_1(exponential_less_one, vec_expm1(x), dvec_expm1(x), expm1(x))
TILE_VECTORS_1(logarithm, vec_log(x), dvec_log(x), log(x))
TILE_VECTORS_1(logarithm_of_one_plus, vec_log1p(x), dvec_log1p(x), log1p(x))
TILE_VECTORS_1(hyperbolic_tangent, vec_tanh(x), dvec_tanh(x), tanh(x))
TILE_VECTORS_1(error, vec_erf(x), dvec_erf(x), erf(x))
TILE_VECTORS_1(arc_sine, vec_asin(x), dvec_asin(x), asin(x))
TILE_VECTORS_1(arc_cosine, vec_acos(x), dvec_acos(x), acos(x))
TILE_VECTORS_1(arc_tangent, vec_atan(x), dvec_atan(x), atan(x))
TILE_VECTORS_1(hyperbolic_sine, vec_sinh(x), dvec_sinh(x), sinh(x))
TILE_VECTORS_1(hyperbolic_cosine, vec_cosh(x), dvec_cosh(x), cosh(x))
TILE_SCALARS_2(power_loop_f32, float, powf(a, b))

#if VEC_FUSED
/* What vectors cannot do is done by C's function, one by one. */
static __attribute__((noinline)) dvec far_trig(dvec x, dvec y, double (*exact)(double))
{
    for (int i = 0; i < DVEC_LANES; i++)
        if (!(fabs(x[i]) <= D_TRIG_MOST))
            y[i] = exact(x[i]);
    return y;
}
#define TRIG(x, inner, exact)                                                                      \
    __extension__({                                                                                \
        dvec near = inner(x);                                                                      \
        dvec_any_bits(~(dvec_abs(x) <= D_TRIG_MOST)) ? far_trig(x, near, exact) : near;            \
    })

static __attribute__((noinline)) dvec far_power(dvec a, dvec b, dvec y, divec near)
{
    for (int i = 0; i < DVEC_LANES; i++)
        if (!near[i])
            y[i] = pow(a[i], b[i]);
    return y;
}

VEC_INLINE dvec power_of_vectors(dvec a, dvec b)
{
    const divec near = d_pow_holds(a, b);
    const dvec y = d_pow(a, b);
    return dvec_any_bits(~near) ? far_power(a, b, y, near) : y;
}
#endif
TILE_DOUBLES_1(sine, TRIG(x, d_sin, sin), sin(x))
TILE_DOUBLES_1(cosine, TRIG(x, d_cos, cos), cos(x))
TILE_DOUBLES_1(tangent, TRIG(x, d_tan, tan), tan(x))
TILE_DOUBLES_2(power, power_of_vectors(a, b), pow(a, b))

/* What is left of a after whole multiples of b, with b's sign; b's zero when nothing is. */
static inline double modulo(double a, double b)
{
    double rest = fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0))
        rest += b;
    return rest == 0 ? copysign(0.0, b) : rest;
}
TILE_SCALARS_2(modulo_loop_f64, double, modulo(a, b))

/* (a - rest) / b is whole but for rounding, one above the floor when the rest has the other sign. A
 * zero has the sign of a / b. */
static inline double floor_divide(double a, double b)
{
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if (b == 0)
        return a / b;
    if (rest != 0 && (rest < 0) != (b < 0))
        quotient -= 1;
    return quotient == 0 ? copysign(0.0, a / b) : nearbyint(quotient);
}
TILE_SCALARS_2(floor_divide_loop_f64, double, floor_divide(a, b))

/* Of floats the same bits by vectors: where |a / b| < 2^28 the quotient in double has the whole
 * part of the true one, which is no nearer than 2^-24 to the next whole number unless it is one;
 * times b it has 52 bits, and what it leaves of a is exact. Where it is not (or b is infinite, or
 * not a number) the block is done one by one. */
enum { DIVIDED = 64 };
#define DIVISION_LOOP(name, function, EACH)                                                        \
    static void name(const tutti_tile_args *t)                                                     \
    {                                                                                              \
        float done[DIVIDED];                                                                       \
        for (int64_t at = 0; at < t->count; at += DIVIDED) {                                       \
            const int64_t count = t->count - at < DIVIDED ? t->count - at : DIVIDED;               \
            const float *from_a = (const float *)t->x[0] + at,                                     \
                        *from_b = (const float *)t->x[1] + at;                                     \
            int32_t far = 0;                                                                       \
            for (int64_t i = 0; i < count; i++) {                                                  \
                const double a = (double)from_a[i], b = (double)from_b[i], exact = a / b;          \
                const bool near = (fabs(exact) < 0x1p28) & (fabs(b) < 0x1p128);                    \
                const double whole = (double)(int32_t)(near ? exact : 0), rest = a - whole * b;    \
                const bool below = rest * b < 0;                                                   \
                const double value = EACH;                                                         \
                far |= near ? 0 : 1;                                                               \
                done[i] = (float)value;                                                            \
            }                                                                                      \
            for (int64_t i = 0; far && i < count; i++)                                             \
                done[i] = (float)function((double)from_a[i], (double)from_b[i]);                   \
            __builtin_memcpy((float *)t->y + at, done, (size_t)count * sizeof *done);              \
        }                                                                                          \
    }
/* Results that are not 0 have the same sign anyway. */
DIVISION_LOOP(modulo_loop_f32, modulo, copysign(rest + (below ? b : 0), b))
DIVISION_LOOP(floor_divide_loop_f32, floor_divide, copysign(whole - (below ? 1.0 : 0.0), exact))

/* Arguments beyond TRIG_MOST need more bits of pi: C's function, one by one. */
VEC_INLINE void trig(const tutti_tile_args *t, vec (*near)(vec), float (*exact)(float))
{
    const float *from = t->x[0];
    float *to = t->y, before[VEC_LANES], after[VEC_LANES];
    for (int64_t i = 0; i < t->count; i += VEC_LANES) {
        int64_t rest = t->count - i < VEC_LANES ? t->count - i : VEC_LANES;
        vec x = rest < VEC_LANES ? tile_load_rest(from + i, rest) : vec_load(from + i);
        vec_store(before, x);
        vec_store(after, near(x));
        bool far = false;
        VEC_UNROLL for (int k = 0; k < VEC_LANES; k++) far |= !(fabsf(before[k]) <= TRIG_MOST);
        for (int k = 0; far && k < VEC_LANES; k++)
            if (!(fabsf(before[k]) <= TRIG_MOST))
                after[k] = exact(before[k]);
        tile_store_rest(to + i, vec_load(after), rest);
    }
}

static void sine_loop_f32(const tutti_tile_args *t)
{
    trig(t, vec_sin, sinf);
}

static void cosine_loop_f32(const tutti_tile_args *t)
{
    trig(t, vec_cos, cosf);
}

static void tangent_loop_f32(const tutti_tile_args *t)
{
    trig(t, vec_tan, tanf);
}

static const tutti_tile_op ops[] = {
    TILE_ROW("exp", 1, exponential),
    TILE_ROW("expm1", 1, exponential_less_one),
    TILE_ROW("log", 1, logarithm),
    TILE_ROW("log1p", 1, logarithm_of_one_plus),
    TILE_ROW("tanh", 1, hyperbolic_tangent),
    TILE_ROW("erf", 1, error),
    TILE_ROW("sin", 1, sine),
    TILE_ROW("cos", 1, cosine),
    TILE_ROW("tan", 1, tangent),
    TILE_ROW("asin", 1, arc_sine),
    TILE_ROW("acos", 1, arc_cosine),
    TILE_ROW("atan", 1, arc_tangent),
    TILE_ROW("sinh", 1, hyperbolic_sine),
    TILE_ROW("cosh", 1, hyperbolic_cosine),
    TILE_ROW("pow", 2, power),
    TILE_ROW("mod", 2, modulo),
    TILE_ROW("floordiv", 2, floor_divide),
    {0},
};

const tutti_tile_family TUTTI_ISA_NAME(tutti_tile_family_exponential) = {
    .isa = TUTTI_ISA_TEXT,
    .ops = ops,
};
