/* asin(x): y = arc sine of x. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_asin;

tutti_sym(tutti_asin)(tutti_sym x)
{
    return tutti__unary(&tutti_op_asin, x);
}

/* dx = dy / sqrt(1 - x^2) */
static tutti_status asin_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    tutti_sym rest = tutti_add(tutti_neg(tutti_square(x)), 1);
    node->input_grads[0] = tutti_mul(dy, tutti_rsqrt(rest));
    return TUTTI_OK;
}

static double asin_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return asin(x[0]);
}

static const char *const samples[] = {
    "f32[2,3]{-0.9:0.9}", "f32[]{-0.9:0.9}", "f64[5]{-0.9:0.9}", "bf16[4]{-0.9:0.9}", NULL,
};

const tutti_op tutti_op_asin = {
    .struct_size = sizeof(tutti_op),
    .name = "asin",
    .version = 1,
    .doc = "asin(x): y = arc sine of x",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = asin_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = asin_scalar,
    .samples = samples,
};
