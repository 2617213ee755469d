/* cosh(x): y = (e^x + e^-x) / 2. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_cosh;

tutti_sym(tutti_cosh)(tutti_sym x)
{
    return tutti__unary(&tutti_op_cosh, x);
}

/* dx = dy * sinh(x) */
static tutti_status cosh_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    node->input_grads[0] = tutti_mul(dy, tutti_sinh(x));
    return TUTTI_OK;
}

static double cosh_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return cosh(x[0]);
}

static const char *const samples[] = {"f32[2,3]", "f32[]", "f64[5]", "bf16[4]", NULL};

const tutti_op tutti_op_cosh = {
    .struct_size = sizeof(tutti_op),
    .name = "cosh",
    .version = 1,
    .doc = "cosh(x): y = (e^x + e^-x) / 2",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = cosh_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = cosh_scalar,
    .samples = samples,
};
