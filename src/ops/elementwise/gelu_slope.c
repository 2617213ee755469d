/* gelu_slope(x): y = P(x) + x * p(x), how steep the exact gelu is at x: P the normal distribution
 * function, p its density, p(x) = e^(-x^2 / 2) / sqrt(2 pi). One operator, because P and p share
 * their exponential. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

#define DENSITY 0.39894228040143267794 /* 1 / sqrt(2 pi) */

extern const tutti_op tutti_op_gelu_slope;

tutti_sym tutti__gelu_slope(tutti_sym x)
{
    return tutti__unary(&tutti_op_gelu_slope, x);
}

/* dx = dy * p(x) * (2 - x^2) */
static tutti_status gelu_slope_gradient(tutti_gradient_call *node)
{
    tutti_sym x = node->inputs[0], xx = tutti_square(x);
    tutti_sym density = tutti_mul(tutti_exp(tutti_mul(xx, -0.5)), DENSITY);
    tutti_sym slope = tutti_mul(density, tutti_add(tutti_neg(xx), 2));
    node->input_grads[0] = tutti_mul(node->output_grads[0], slope);
    return TUTTI_OK;
}

/* Far below 0 it is -0: it comes there from below. */
static double gelu_slope_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    double below = 0.5 * erfc(-x[0] * M_SQRT1_2), bell = exp(-0.5 * x[0] * x[0]);
    return bell > 0 ? below + x[0] * bell * DENSITY : copysign(below, x[0]);
}

static const char *const samples[] = {
    "f32[2,3]{-3:3}", "f32[]", "f64[5]{-3:3}", "f16[4]", "bf16[4]", "f32[4]{=-40,-13,13,40}", NULL,
};

const tutti_op tutti_op_gelu_slope = {
    .struct_size = sizeof(tutti_op),
    .name = "gelu_slope",
    .version = 1,
    .doc = "gelu_slope(x): y = P(x) + x * p(x) with the normal distribution P and its density p",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = gelu_slope_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = gelu_slope_scalar,
    .samples = samples,
};
