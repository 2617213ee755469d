/* softplus(x): y = log(1 + e^x). */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_softplus;

tutti_sym(tutti_softplus)(tutti_sym x)
{
    return tutti__unary(&tutti_op_softplus, x);
}

/* dx = dy * sigmoid(x) */
static tutti_status softplus_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    node->input_grads[0] = tutti_mul(dy, tutti_sigmoid(x));
    return TUTTI_OK;
}

static double softplus_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return isnan(x[0]) ? x[0] : fmax(x[0], 0) + log1p(exp(-fabs(x[0])));
}

static const char *const samples[] = {
    "f32[2,3]{-3:3}", "f32[]", "f64[5]{-3:3}", "f16[4]", "f32[3]{=-90,0,90}", NULL,
};

const tutti_op tutti_op_softplus = {
    .struct_size = sizeof(tutti_op),
    .name = "softplus",
    .version = 1,
    .doc = "softplus(x): y = log(1 + e^x)",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = softplus_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = softplus_scalar,
    .samples = samples,
};
