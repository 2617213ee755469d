/* sqrt(x): y = x^(1/2). NaN below 0. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_sqrt;

tutti_sym(tutti_sqrt)(tutti_sym x)
{
    return tutti__unary(&tutti_op_sqrt, x);
}

/* dx = dy / (2 * y) */
static tutti_status sqrt_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    node->input_grads[0] = tutti_div(tutti_mul(dy, 0.5), y);
    return TUTTI_OK;
}

static double sqrt_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return sqrt(x[0]);
}

static const char *const samples[] = {
    "f32[2,3]{0.2:4}", "f32[]{0.2:4}", "f64[5]{0.2:4}", "bf16[4]{0.2:4}", NULL,
};

const tutti_op tutti_op_sqrt = {
    .struct_size = sizeof(tutti_op),
    .name = "sqrt",
    .version = 1,
    .doc = "sqrt(x): y = x^(1/2)",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = sqrt_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = sqrt_scalar,
    .samples = samples,
};
