/* activation.c: tile loops of activation functions. */
#include "device/cpu/tile/loops.h"

#define SELU_SCALE ((T)1.0507009873554804934193349852946)
#define SELU_ALPHA ((T)1.6732632423543772848170429916717)
#define ROOT ((T)0.79788456080286535588) /* sqrt(2 / pi) */

#define BETWEEN(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))

TILE_1(relu, x > 0 || x != x ? x : 0)
TILE_1(relu6, BETWEEN(x, (T)0, (T)6))
TILE_1(leaky_relu, x > 0 ? x : p[0] * x)
TILE_1(elu, x > 0 ? x : p[0] * e_expm1(x))
TILE_1(selu, x > 0 ? SELU_SCALE * x : SELU_SCALE * SELU_ALPHA * e_expm1(x))
TILE_1(gelu, e_gelu(x))
TILE_1(gelu_tanh, (T)0.5 * x * (1 + e_tanh(ROOT * (x + (T)0.044715 * x * x * x))))
TILE_1(silu, x *e_sigmoid(x))
TILE_1(sigmoid, e_sigmoid(x))
TILE_1(softplus, e_softplus(x))
TILE_1(softsign, e_abs(x) == (T)INFINITY ? e_copysign((T)1, x) : x / (1 + e_abs(x)))
TILE_1(hard_sigmoid, BETWEEN(x + 3, (T)0, (T)6) / 6)
TILE_2(sigmoid_cross_entropy, (a > 0 ? a : (T)0) - a * b + e_log1p(e_exp(-e_abs(a))))

static const tutti_tile_op ops[] = {
    TILE_ROW("relu", 1, relu),
    TILE_ROW("relu6", 1, relu6),
    TILE_ROW_P("leaky_relu", 1, leaky_relu, "alpha"),
    TILE_ROW_P("elu", 1, elu, "alpha"),
    TILE_ROW("selu", 1, selu),
    {"gelu", 1, gelu_tanh_loop_f32, gelu_tanh_loop_f64, {0}, "approximate"},
    TILE_ROW("gelu", 1, gelu),
    TILE_ROW("silu", 1, silu),
    TILE_ROW("sigmoid", 1, sigmoid),
    TILE_ROW("softplus", 1, softplus),
    TILE_ROW("softsign", 1, softsign),
    TILE_ROW("hard_sigmoid", 1, hard_sigmoid),
    TILE_ROW("sigmoid_cross_entropy", 2, sigmoid_cross_entropy),
    {0},
};

const tutti_tile_family TUTTI_ISA_NAME(tutti_tile_family_activation) = {
    .isa = TUTTI_ISA_TEXT,
    .ops = ops,
};
