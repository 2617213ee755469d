/* log(x): y = natural logarithm of x. -inf at 0, NaN below. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_log;

tutti_sym(tutti_log)(tutti_sym x)
{
    return tutti__unary(&tutti_op_log, x);
}

/* dx = dy / x */
static tutti_status log_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    node->input_grads[0] = tutti_div(dy, x);
    return TUTTI_OK;
}

static double log_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return log(x[0]);
}

static const char *const samples[] = {
    "f32[2,3]{0.2:3}", "f32[]{0.2:3}", "f64[5]{0.2:3}", "bf16[4]{0.2:3}", NULL,
};

const tutti_op tutti_op_log = {
    .struct_size = sizeof(tutti_op),
    .name = "log",
    .version = 1,
    .doc = "log(x): y = natural logarithm of x",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = log_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = log_scalar,
    .samples = samples,
};
