/* log1p(x): y = log(1 + x). Exact near 0. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_log1p;

tutti_sym(tutti_log1p)(tutti_sym x)
{
    return tutti__unary(&tutti_op_log1p, x);
}

/* dx = dy / (1 + x) */
static tutti_status log1p_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    node->input_grads[0] = tutti_div(dy, tutti_add(x, 1));
    return TUTTI_OK;
}

static double log1p_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return log1p(x[0]);
}

static const char *const samples[] = {
    "f32[2,3]{-0.5:2}", "f32[]{-0.5:2}",       "f64[5]{-0.5:2}",
    "f16[4]{-0.5:2}",   "f32[2]{=1e-6,-1e-6}", NULL,
};

const tutti_op tutti_op_log1p = {
    .struct_size = sizeof(tutti_op),
    .name = "log1p",
    .version = 1,
    .doc = "log1p(x): y = log(1 + x)",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = log1p_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = log1p_scalar,
    .samples = samples,
};
