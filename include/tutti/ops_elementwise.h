/* ops_elementwise.h: operators that work element by element.
 *
 * Every function adds one node and returns its output. Inputs of one call broadcast against each
 * other (NumPy's rule) and must have one element type; tutti_cast converts. Arithmetic takes floats
 * and integers; integers wrap round on overflow. Bad inputs give a poison symbol, see graph.h. */
#ifndef TUTTI_OPS_ELEMENTWISE_H
#define TUTTI_OPS_ELEMENTWISE_H

#include "tutti/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Operators of two take a number for either side: tutti_sub(1, x), tutti_mul(x, 0.5). It becomes a
 * constant of the other side's element type, which must have it: an integer x takes whole numbers.
 */
typedef tutti_sym tutti_binary_fn_(tutti_sym a, tutti_sym b);
TUTTI_API tutti_sym tutti_binary_(tutti_binary_fn_ *op, tutti_sym a, tutti_sym b);
TUTTI_API tutti_sym tutti_binary_left_(tutti_binary_fn_ *op, double a, tutti_sym b);
TUTTI_API tutti_sym tutti_binary_right_(tutti_binary_fn_ *op, tutti_sym a, double b);
#ifdef __cplusplus
#define TUTTI_BINARY_(op, a, b) TUTTI_AT((op)((a), (b)))
#define TUTTI_OPERANDS_(both, left, right, a, b) (both)
#else
#define TUTTI_OPERANDS_(both, left, right, a, b)                                                   \
    _Generic((a), tutti_sym : _Generic((b), tutti_sym : both, default : right), default : left)
#define TUTTI_BINARY_(op, a, b)                                                                    \
    TUTTI_AT(TUTTI_OPERANDS_(tutti_binary_, tutti_binary_left_, tutti_binary_right_, a,            \
                             b)((op), (a), (b)))
#endif

/* Arithmetic of two. */
TUTTI_API tutti_sym tutti_add(tutti_sym a, tutti_sym b); /* a + b */
#define tutti_add(a, b) TUTTI_BINARY_(tutti_add, a, b)
TUTTI_API tutti_sym tutti_sub(tutti_sym a, tutti_sym b); /* a - b */
#define tutti_sub(a, b) TUTTI_BINARY_(tutti_sub, a, b)
TUTTI_API tutti_sym tutti_mul(tutti_sym a, tutti_sym b); /* a * b */
#define tutti_mul(a, b) TUTTI_BINARY_(tutti_mul, a, b)
/* a / b; floats only (integers: tutti_floordiv, or tutti_cast first). */
TUTTI_API tutti_sym tutti_div(tutti_sym a, tutti_sym b);
#define tutti_div(a, b) TUTTI_BINARY_(tutti_div, a, b)
/* floor(a / b), as Python's //, also in the sign of zero (-0 // 1 is -0). An integer divided by
 * zero fails the run. */
TUTTI_API tutti_sym tutti_floordiv(tutti_sym a, tutti_sym b);
#define tutti_floordiv(a, b) TUTTI_BINARY_(tutti_floordiv, a, b)
/* a - b * floor(a / b), as Python's %: the sign is b's. An integer modulo zero fails the run. */
TUTTI_API tutti_sym tutti_mod(tutti_sym a, tutti_sym b);
#define tutti_mod(a, b) TUTTI_BINARY_(tutti_mod, a, b)
/* a ^ b. An integer raised to a negative integer fails the run. The gradient for b counts as zero
 * where a <= 0. */
TUTTI_API tutti_sym tutti_pow(tutti_sym a, tutti_sym b);
#define tutti_pow(a, b) TUTTI_BINARY_(tutti_pow, a, b)
/* The larger, the smaller; NaN when one is NaN, and 0 is larger than -0 (IEEE 754-2019). Where both
 * are equal the gradient goes to a. */
TUTTI_API tutti_sym tutti_maximum(tutti_sym a, tutti_sym b);
#define tutti_maximum(a, b) TUTTI_BINARY_(tutti_maximum, a, b)
TUTTI_API tutti_sym tutti_minimum(tutti_sym a, tutti_sym b);
#define tutti_minimum(a, b) TUTTI_BINARY_(tutti_minimum, a, b)

/* Arithmetic of one: floats and integers. */
TUTTI_API tutti_sym tutti_neg(tutti_sym x); /* -x */
#define tutti_neg(...) TUTTI_AT(tutti_neg(__VA_ARGS__))
TUTTI_API tutti_sym tutti_abs(tutti_sym x); /* |x| */
#define tutti_abs(...) TUTTI_AT(tutti_abs(__VA_ARGS__))
TUTTI_API tutti_sym tutti_sign(tutti_sym x); /* -1, 0 or 1; NaN stays NaN */
#define tutti_sign(...) TUTTI_AT(tutti_sign(__VA_ARGS__))
TUTTI_API tutti_sym tutti_square(tutti_sym x); /* x * x */
#define tutti_square(...) TUTTI_AT(tutti_square(__VA_ARGS__))
/* x held between two bounds; NaN stays NaN. The gradient is zero outside the bounds. */
TUTTI_API tutti_sym tutti_clip(tutti_sym x, double min, double max);
#define tutti_clip(...) TUTTI_AT(tutti_clip(__VA_ARGS__))

/* Functions of one float. */
TUTTI_API tutti_sym tutti_exp(tutti_sym x); /* e^x */
#define tutti_exp(...) TUTTI_AT(tutti_exp(__VA_ARGS__))
TUTTI_API tutti_sym tutti_expm1(tutti_sym x); /* e^x - 1, exact near 0 */
#define tutti_expm1(...) TUTTI_AT(tutti_expm1(__VA_ARGS__))
TUTTI_API tutti_sym tutti_log(tutti_sym x); /* natural logarithm; -inf at 0, NaN below */
#define tutti_log(...) TUTTI_AT(tutti_log(__VA_ARGS__))
TUTTI_API tutti_sym tutti_log1p(tutti_sym x); /* log(1 + x), exact near 0 */
#define tutti_log1p(...) TUTTI_AT(tutti_log1p(__VA_ARGS__))
TUTTI_API tutti_sym tutti_sqrt(tutti_sym x); /* NaN below 0 */
#define tutti_sqrt(...) TUTTI_AT(tutti_sqrt(__VA_ARGS__))
TUTTI_API tutti_sym tutti_rsqrt(tutti_sym x); /* 1 / sqrt(x) */
#define tutti_rsqrt(...) TUTTI_AT(tutti_rsqrt(__VA_ARGS__))
TUTTI_API tutti_sym tutti_reciprocal(tutti_sym x); /* 1 / x */
#define tutti_reciprocal(...) TUTTI_AT(tutti_reciprocal(__VA_ARGS__))
TUTTI_API tutti_sym tutti_sin(tutti_sym x);
#define tutti_sin(...) TUTTI_AT(tutti_sin(__VA_ARGS__))
TUTTI_API tutti_sym tutti_cos(tutti_sym x);
#define tutti_cos(...) TUTTI_AT(tutti_cos(__VA_ARGS__))
TUTTI_API tutti_sym tutti_tan(tutti_sym x);
#define tutti_tan(...) TUTTI_AT(tutti_tan(__VA_ARGS__))
TUTTI_API tutti_sym tutti_asin(tutti_sym x);
#define tutti_asin(...) TUTTI_AT(tutti_asin(__VA_ARGS__))
TUTTI_API tutti_sym tutti_acos(tutti_sym x);
#define tutti_acos(...) TUTTI_AT(tutti_acos(__VA_ARGS__))
TUTTI_API tutti_sym tutti_atan(tutti_sym x);
#define tutti_atan(...) TUTTI_AT(tutti_atan(__VA_ARGS__))
TUTTI_API tutti_sym tutti_sinh(tutti_sym x);
#define tutti_sinh(...) TUTTI_AT(tutti_sinh(__VA_ARGS__))
TUTTI_API tutti_sym tutti_cosh(tutti_sym x);
#define tutti_cosh(...) TUTTI_AT(tutti_cosh(__VA_ARGS__))
TUTTI_API tutti_sym tutti_tanh(tutti_sym x);
#define tutti_tanh(...) TUTTI_AT(tutti_tanh(__VA_ARGS__))
TUTTI_API tutti_sym tutti_erf(tutti_sym x); /* 2/sqrt(pi) * integral of e^(-t^2), 0 to x */
#define tutti_erf(...) TUTTI_AT(tutti_erf(__VA_ARGS__))
/* To a whole number below, above, nearest (halves to the even one). No gradient flows. */
TUTTI_API tutti_sym tutti_floor(tutti_sym x);
#define tutti_floor(...) TUTTI_AT(tutti_floor(__VA_ARGS__))
TUTTI_API tutti_sym tutti_ceil(tutti_sym x);
#define tutti_ceil(...) TUTTI_AT(tutti_ceil(__VA_ARGS__))
TUTTI_API tutti_sym tutti_round(tutti_sym x);
#define tutti_round(...) TUTTI_AT(tutti_round(__VA_ARGS__))
/* To the nearest number of a small float (halves to the even one): `mantissa` bits behind the
 * first, exponents from `least` on, evenly spaced below; what is above `most` becomes most
 * (saturate), an infinity (infinite) or NaN. float8e4m3fn: tutti_round_float(x, .mantissa = 3,
 * .least = -6, .most = 448, .saturate = true). No gradient flows. */
typedef struct tutti_round_float_options {
    size_t struct_size;
    int mantissa, least;
    double most;
    bool saturate, infinite;
} tutti_round_float_options;
TUTTI_API tutti_sym tutti_round_float_with(tutti_sym x, const tutti_round_float_options *options);
#define tutti_round_float(x, ...)                                                                  \
    TUTTI_AT(tutti_round_float_with((x), TUTTI_OPTIONS(tutti_round_float_options, __VA_ARGS__)))

/* Activations. */
TUTTI_API tutti_sym tutti_relu(tutti_sym x); /* max(x, 0) */
#define tutti_relu(...) TUTTI_AT(tutti_relu(__VA_ARGS__))
TUTTI_API tutti_sym tutti_relu6(tutti_sym x); /* min(max(x, 0), 6) */
#define tutti_relu6(...) TUTTI_AT(tutti_relu6(__VA_ARGS__))
TUTTI_API tutti_sym tutti_leaky_relu(tutti_sym x, double alpha); /* x > 0 ? x : alpha * x */
#define tutti_leaky_relu(...) TUTTI_AT(tutti_leaky_relu(__VA_ARGS__))
TUTTI_API tutti_sym tutti_elu(tutti_sym x, double alpha); /* x > 0 ? x : alpha * (e^x - 1) */
#define tutti_elu(...) TUTTI_AT(tutti_elu(__VA_ARGS__))
/* 1.0507 * (x > 0 ? x : 1.6733 * (e^x - 1)) */
TUTTI_API tutti_sym tutti_selu(tutti_sym x);
#define tutti_selu(...) TUTTI_AT(tutti_selu(__VA_ARGS__))
TUTTI_API tutti_sym tutti_sigmoid(tutti_sym x); /* 1 / (1 + e^-x) */
#define tutti_sigmoid(...) TUTTI_AT(tutti_sigmoid(__VA_ARGS__))
TUTTI_API tutti_sym tutti_hard_sigmoid(tutti_sym x); /* relu6(x + 3) / 6 */
#define tutti_hard_sigmoid(...) TUTTI_AT(tutti_hard_sigmoid(__VA_ARGS__))
TUTTI_API tutti_sym tutti_hard_swish(tutti_sym x); /* x * hard_sigmoid(x) */
#define tutti_hard_swish(...) TUTTI_AT(tutti_hard_swish(__VA_ARGS__))
TUTTI_API tutti_sym tutti_mish(tutti_sym x); /* x * tanh(softplus(x)) */
#define tutti_mish(...) TUTTI_AT(tutti_mish(__VA_ARGS__))
/* x > 0 ? x : slope * x; slope broadcasts and has a gradient. */
TUTTI_API tutti_sym tutti_prelu(tutti_sym x, tutti_sym slope);
#define tutti_prelu(...) TUTTI_AT(tutti_prelu(__VA_ARGS__))
TUTTI_API tutti_sym tutti_silu(tutti_sym x); /* x * sigmoid(x) */
#define tutti_silu(...) TUTTI_AT(tutti_silu(__VA_ARGS__))
TUTTI_API tutti_sym tutti_softplus(tutti_sym x); /* log(1 + e^x) */
#define tutti_softplus(...) TUTTI_AT(tutti_softplus(__VA_ARGS__))
TUTTI_API tutti_sym tutti_softsign(tutti_sym x); /* x / (1 + |x|) */
#define tutti_softsign(...) TUTTI_AT(tutti_softsign(__VA_ARGS__))
/* x * (1 + erf(x / sqrt 2)) / 2; .approximate = true: by tanh, as GPT-2 does. */
typedef struct tutti_gelu_options {
    size_t struct_size;
    bool approximate;
} tutti_gelu_options;
TUTTI_API tutti_sym tutti_gelu_with(tutti_sym x, const tutti_gelu_options *options);
#define tutti_gelu(x, ...)                                                                         \
    TUTTI_AT(tutti_gelu_with((x), TUTTI_OPTIONS(tutti_gelu_options, __VA_ARGS__)))

/* a where the bool is true, else b. Any element type. */
TUTTI_API tutti_sym tutti_where(tutti_sym condition, tutti_sym a, tutti_sym b);
#define tutti_where(condition, a, b)                                                               \
    TUTTI_AT(TUTTI_OPERANDS_(tutti_where, tutti_where_left_, tutti_where_right_, a,                \
                             b)((condition), (a), (b)))
TUTTI_API tutti_sym tutti_where_left_(tutti_sym condition, double a, tutti_sym b);
TUTTI_API tutti_sym tutti_where_right_(tutti_sym condition, tutti_sym a, double b);
/* To another element type. Floats to integers truncate toward zero and saturate, NaN gives 0;
 * numbers to bool ask x != 0. */
TUTTI_API tutti_sym tutti_cast(tutti_sym x, tutti_dtype dtype);
#define tutti_cast(...) TUTTI_AT(tutti_cast(__VA_ARGS__))

/* Comparisons: bool. NaN compares unequal to everything. No gradient flows. */
TUTTI_API tutti_sym tutti_equal(tutti_sym a, tutti_sym b);
#define tutti_equal(a, b) TUTTI_BINARY_(tutti_equal, a, b)
TUTTI_API tutti_sym tutti_not_equal(tutti_sym a, tutti_sym b);
#define tutti_not_equal(a, b) TUTTI_BINARY_(tutti_not_equal, a, b)
TUTTI_API tutti_sym tutti_less(tutti_sym a, tutti_sym b);
#define tutti_less(a, b) TUTTI_BINARY_(tutti_less, a, b)
TUTTI_API tutti_sym tutti_less_equal(tutti_sym a, tutti_sym b);
#define tutti_less_equal(a, b) TUTTI_BINARY_(tutti_less_equal, a, b)
TUTTI_API tutti_sym tutti_greater(tutti_sym a, tutti_sym b);
#define tutti_greater(a, b) TUTTI_BINARY_(tutti_greater, a, b)
TUTTI_API tutti_sym tutti_greater_equal(tutti_sym a, tutti_sym b);
#define tutti_greater_equal(a, b) TUTTI_BINARY_(tutti_greater_equal, a, b)

/* Logic on bools. */
TUTTI_API tutti_sym tutti_logical_and(tutti_sym a, tutti_sym b);
#define tutti_logical_and(...) TUTTI_AT(tutti_logical_and(__VA_ARGS__))
TUTTI_API tutti_sym tutti_logical_or(tutti_sym a, tutti_sym b);
#define tutti_logical_or(...) TUTTI_AT(tutti_logical_or(__VA_ARGS__))
TUTTI_API tutti_sym tutti_logical_xor(tutti_sym a, tutti_sym b);
#define tutti_logical_xor(...) TUTTI_AT(tutti_logical_xor(__VA_ARGS__))
TUTTI_API tutti_sym tutti_logical_not(tutti_sym x);
#define tutti_logical_not(...) TUTTI_AT(tutti_logical_not(__VA_ARGS__))

/* Bit by bit, of integers of one type. */
TUTTI_API tutti_sym tutti_bitwise_and(tutti_sym a, tutti_sym b);
#define tutti_bitwise_and(...) TUTTI_AT(tutti_bitwise_and(__VA_ARGS__))
TUTTI_API tutti_sym tutti_bitwise_or(tutti_sym a, tutti_sym b);
#define tutti_bitwise_or(...) TUTTI_AT(tutti_bitwise_or(__VA_ARGS__))
TUTTI_API tutti_sym tutti_bitwise_xor(tutti_sym a, tutti_sym b);
#define tutti_bitwise_xor(...) TUTTI_AT(tutti_bitwise_xor(__VA_ARGS__))

/* Tests of floats: bool. */
TUTTI_API tutti_sym tutti_is_nan(tutti_sym x);
#define tutti_is_nan(...) TUTTI_AT(tutti_is_nan(__VA_ARGS__))
TUTTI_API tutti_sym tutti_is_inf(tutti_sym x);
#define tutti_is_inf(...) TUTTI_AT(tutti_is_inf(__VA_ARGS__))
TUTTI_API tutti_sym tutti_is_finite(tutti_sym x);
#define tutti_is_finite(...) TUTTI_AT(tutti_is_finite(__VA_ARGS__))

#ifdef __cplusplus
}
/* The forms with a number, as overloads. */
#define TUTTI_NUMBERS_(name)                                                                       \
    inline tutti_sym(name)(tutti_sym a, double b)                                                  \
    {                                                                                              \
        return tutti_binary_right_(name, a, b);                                                    \
    }                                                                                              \
    inline tutti_sym(name)(double a, tutti_sym b)                                                  \
    {                                                                                              \
        return tutti_binary_left_(name, a, b);                                                     \
    }
TUTTI_NUMBERS_(tutti_add)
TUTTI_NUMBERS_(tutti_sub)
TUTTI_NUMBERS_(tutti_mul)
TUTTI_NUMBERS_(tutti_div)
TUTTI_NUMBERS_(tutti_floordiv)
TUTTI_NUMBERS_(tutti_mod)
TUTTI_NUMBERS_(tutti_pow)
TUTTI_NUMBERS_(tutti_maximum)
TUTTI_NUMBERS_(tutti_minimum)
TUTTI_NUMBERS_(tutti_equal)
TUTTI_NUMBERS_(tutti_not_equal)
TUTTI_NUMBERS_(tutti_less)
TUTTI_NUMBERS_(tutti_less_equal)
TUTTI_NUMBERS_(tutti_greater)
TUTTI_NUMBERS_(tutti_greater_equal)
#undef TUTTI_NUMBERS_
inline tutti_sym(tutti_where)(tutti_sym condition, tutti_sym a, double b)
{
    return tutti_where_right_(condition, a, b);
}
inline tutti_sym(tutti_where)(tutti_sym condition, double a, tutti_sym b)
{
    return tutti_where_left_(condition, a, b);
}
#endif
#endif
