/* expm1(x): y = e^x - 1. Exact near 0. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_expm1;

tutti_sym(tutti_expm1)(tutti_sym x)
{
    return tutti__unary(&tutti_op_expm1, x);
}

/* dx = dy * (y + 1) */
static tutti_status expm1_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    node->input_grads[0] = tutti_mul(dy, tutti_add(y, 1));
    return TUTTI_OK;
}

static double expm1_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return expm1(x[0]);
}

static const char *const samples[] = {
    "f32[2,3]", "f32[]", "f64[5]", "bf16[4]", "f32[3]{=1e-6,-1e-6,2}", NULL,
};

const tutti_op tutti_op_expm1 = {
    .struct_size = sizeof(tutti_op),
    .name = "expm1",
    .version = 1,
    .doc = "expm1(x): y = e^x - 1",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = expm1_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = expm1_scalar,
    .samples = samples,
};
