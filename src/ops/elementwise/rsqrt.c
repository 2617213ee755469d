/* rsqrt(x): y = x^(-1/2). */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_rsqrt;

tutti_sym(tutti_rsqrt)(tutti_sym x)
{
    return tutti__unary(&tutti_op_rsqrt, x);
}

/* dx = -dy * y^3 / 2 */
static tutti_status rsqrt_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    node->input_grads[0] = tutti_mul(dy, tutti_mul(tutti_mul(y, -0.5), tutti_square(y)));
    return TUTTI_OK;
}

static double rsqrt_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return 1 / sqrt(x[0]);
}

static const char *const samples[] = {
    "f32[2,3]{0.2:4}", "f32[]{0.2:4}", "f64[5]{0.2:4}", "bf16[4]{0.2:4}", NULL,
};

const tutti_op tutti_op_rsqrt = {
    .struct_size = sizeof(tutti_op),
    .name = "rsqrt",
    .version = 1,
    .doc = "rsqrt(x): y = x^(-1/2)",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = rsqrt_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = rsqrt_scalar,
    .samples = samples,
};
