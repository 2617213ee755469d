/* silu(x): y = x * sigmoid(x). Also called swish. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_silu;

tutti_sym(tutti_silu)(tutti_sym x)
{
    return tutti__unary(&tutti_op_silu, x);
}

/* dx = dy * s * (1 + x * (1 - s)), s = sigmoid(x) */
static tutti_status silu_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    tutti_sym s = tutti_sigmoid(x), rest = tutti_add(tutti_neg(s), 1);
    tutti_sym slope = tutti_mul(s, tutti_add(tutti_mul(x, rest), 1));
    node->input_grads[0] = tutti_mul(dy, slope);
    return TUTTI_OK;
}

static double silu_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] / (1 + exp(-x[0]));
}

static const char *const samples[] = {
    "f32[2,3]{-3:3}", "f32[]", "f64[5]{-3:3}", "f16[4]", "f32[3]{=-90,0.1,90}", NULL,
};

const tutti_op tutti_op_silu = {
    .struct_size = sizeof(tutti_op),
    .name = "silu",
    .version = 1,
    .doc = "silu(x): y = x * sigmoid(x)",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = silu_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = silu_scalar,
    .samples = samples,
};
