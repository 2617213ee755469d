/* exponential.c: tile loops of exponential, logarithmic, trigonometric and error functions. */
#include "device/cpu/tile/loops.h"

TILE_1(exponential, e_exp(x))
TILE_1(exponential_less_one, e_expm1(x))
TILE_1(logarithm, e_log(x))
TILE_1(logarithm_of_one_plus, e_log1p(x))
TILE_1(hyperbolic_tangent, e_tanh(x))
TILE_1(error, e_erf(x))
TILE_1(tangent, e_tan(x))
TILE_1(arc_sine, e_asin(x))
TILE_1(arc_cosine, e_acos(x))
TILE_1(arc_tangent, e_atan(x))
TILE_1(hyperbolic_sine, e_sinh(x))
TILE_1(hyperbolic_cosine, e_cosh(x))
TILE_2(power, e_pow(a, b))
TILE_LOOP_1(sine_loop_f64, double, sin(x))
TILE_LOOP_1(cosine_loop_f64, double, cos(x))

/* What is left of a after whole multiples of b, with b's sign; b's zero when nothing is. */
#define REST(rest)                                                                                 \
    ((rest) == 0 ? e_copysign((T)0, b) : ((rest) < 0) != (b < 0) ? (rest) + b : (rest))
TILE_2(modulo, REST(e_fmod(a, b)))
/* (a - rest) / b is whole but for rounding, one above the floor when the rest has the other sign. */
#define FLOOR_QUOTIENT(rest)                                                                       \
    (b == 0 ? a / b                                                                                \
            : e_round((a - (rest)) / b - ((rest) != 0 && ((rest) < 0) != (b < 0) ? (T)1 : (T)0)))
TILE_2(floor_divide, FLOOR_QUOTIENT(e_fmod(a, b)))

/* Arguments beyond MATH_TRIG_MOST need more bits of pi: C's function, one by one. */
static void trig(const tutti_tile_args *t, uint32_t quarter, float (*exact)(float))
{
    const float *x = t->x[0];
    float *y = t->y, saved[TUTTI_TILE_BYTES / 4];
    int64_t far[TUTTI_TILE_BYTES / 4], far_count = 0;
    for (int64_t i = 0; i < t->count; i++)
        if (!(fabsf(x[i]) <= MATH_TRIG_MOST)) {
            far[far_count] = i;
            saved[far_count++] = x[i];
        }
    const int64_t count = t->count;
    TILE_FOR(int64_t i = 0; i < count; i++)
        y[i] = trig_f32(x[i], quarter);
    for (int64_t i = 0; i < far_count; i++)
        y[far[i]] = exact(saved[i]);
}

static void sine_loop_f32(const tutti_tile_args *t)
{
    trig(t, 0, sinf);
}

static void cosine_loop_f32(const tutti_tile_args *t)
{
    trig(t, 1, cosf);
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
