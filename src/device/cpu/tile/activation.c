/* activation.c: tile loops of activation functions. */
#include "device/cpu/tile/activation.h"
#include "device/cpu/tile/loops_f64.h"

#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_ALPHA 1.6732632423543772848170429916717
#define POSITIVE vec_gt(x, S(0.0f))
#define BETWEEN(x, low, high) ((x) <= (low) ? (low) : (x) > (high) ? (high) : (x))

TILE_1(relu, vec_relu(x), x > 0 || x != x ? x : 0)
TILE_1(relu6, vec_clip(x, S(0.0f), S(6.0f)), BETWEEN(x, 0, 6))
TILE_1(leaky_relu, vec_select(POSITIVE, x, p[0] * x), x > 0 ? x : p[0] * x)
TILE_VECTORS_1(elu, vec_select(POSITIVE, x, p[0] * vec_expm1(x)),
               dvec_select(dvec_gt(x, D(0.0)), x, p[0] * dvec_expm1(x)),
               x > 0 ? x : p[0] * expm1(x))
TILE_VECTORS_1(selu, vec_select(POSITIVE, x, vec_expm1(x) * (float)SELU_ALPHA) * (float)SELU_SCALE,
               dvec_select(dvec_gt(x, D(0.0)), x, dvec_expm1(x) * SELU_ALPHA) * SELU_SCALE,
               SELU_SCALE *(x > 0 ? x : SELU_ALPHA * expm1(x)))
TILE_VECTORS_1(gelu, vec_gelu(x), dvec_gelu(x), gelu(x))
TILE_VECTORS_1(gelu_slope, vec_gelu_slope(x), dvec_gelu_slope(x), gelu_slope(x))
TILE_VECTORS_1(gelu_tanh, vec_gelu_tanh(x), dvec_gelu_tanh(x),
               0.5 * x * (1 + tanh(ROOT * (x + 0.044715 * x * x * x))))
TILE_VECTORS_1(silu, vec_silu(x), dvec_silu(x), silu(x))
TILE_VECTORS_1(sigmoid, vec_sigmoid(x), dvec_sigmoid(x), sigmoid(x))
TILE_VECTORS_1(softplus, vec_softplus(x), dvec_softplus(x), softplus(x))
TILE_1(softsign,
       vec_select(vec_eq(vec_abs(x), S(INFINITY)), vec_copysign(S(1.0f), x),
                  x / (vec_abs(x) + 1.0f)),
       fabs(x) == (double)INFINITY ? copysign(1, x) : x / (1 + fabs(x)))
TILE_1(hard_sigmoid, vec_clip(x + 3.0f, S(0.0f), S(6.0f)) / 6.0f, BETWEEN(x + 3, 0, 6) / 6)
TILE_1(hard_swish, vec_hard_swish(x), x *(BETWEEN(x + 3, 0, 6) / 6))
TILE_VECTORS_1(mish, vec_mish(x), dvec_mish(x), mish(x))
TILE_2(prelu, vec_select(vec_gt(a, S(0.0f)), a, b *a), a > 0 ? a : b * a)
TILE_VECTORS_2(sigmoid_cross_entropy, vec_wrong_part(a, b) + vec_log1p(vec_exp(-vec_abs(a))),
               dvec_wrong_part(a, b) + dvec_log1p(dvec_exp(-dvec_abs(a))),
               wrong_part(a, b) + log1p(exp(-fabs(a))))

static const tutti_tile_op ops[] = {
    TILE_ROW("relu", 1, relu),
    TILE_ROW("relu6", 1, relu6),
    TILE_ROW_P("leaky_relu", 1, leaky_relu, "alpha"),
    TILE_ROW_P("elu", 1, elu, "alpha"),
    TILE_ROW("selu", 1, selu),
    {"gelu", 1, gelu_tanh_loop_f32, gelu_tanh_loop_f64, {0}, "approximate"},
    TILE_ROW("gelu", 1, gelu),
    TILE_ROW("gelu_slope", 1, gelu_slope),
    TILE_ROW("silu", 1, silu),
    TILE_ROW("sigmoid", 1, sigmoid),
    TILE_ROW("softplus", 1, softplus),
    TILE_ROW("softsign", 1, softsign),
    TILE_ROW("hard_sigmoid", 1, hard_sigmoid),
    TILE_ROW("hard_swish", 1, hard_swish),
    TILE_ROW("mish", 1, mish),
    TILE_ROW("prelu", 2, prelu),
    TILE_ROW("sigmoid_cross_entropy", 2, sigmoid_cross_entropy),
    {0},
};

const tutti_tile_family TUTTI_ISA_NAME(tutti_tile_family_activation) = {
    .isa = TUTTI_ISA_TEXT,
    .ops = ops,
};
