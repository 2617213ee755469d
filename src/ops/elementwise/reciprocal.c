/* reciprocal(x): y = 1 / x. */
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_reciprocal;

tutti_sym(tutti_reciprocal)(tutti_sym x)
{
    return tutti__unary(&tutti_op_reciprocal, x);
}

/* dx = -dy * y^2 */
static tutti_status reciprocal_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    node->input_grads[0] = tutti_neg(tutti_mul(dy, tutti_square(y)));
    return TUTTI_OK;
}

static double reciprocal_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return 1 / x[0];
}

static const char *const samples[] = {
    "f32[2,3]{0.5:2}", "f32[]{-2:-0.5}", "f64[5]{0.5:2}", "bf16[4]{0.5:2}", NULL,
};

const tutti_op tutti_op_reciprocal = {
    .struct_size = sizeof(tutti_op),
    .name = "reciprocal",
    .version = 1,
    .doc = "reciprocal(x): y = 1 / x",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = reciprocal_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = reciprocal_scalar,
    .samples = samples,
};
