/* sin(x): y = sin x. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_sin;

tutti_sym(tutti_sin)(tutti_sym x)
{
    return tutti__unary(&tutti_op_sin, x);
}

/* dx = dy * cos(x) */
static tutti_status sin_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    node->input_grads[0] = tutti_mul(dy, tutti_cos(x));
    return TUTTI_OK;
}

static double sin_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return sin(x[0]);
}

static const char *const samples[] = {"f32[2,3]{-3:3}", "f32[]", "f64[5]{-3:3}", "f16[4]", NULL};

const tutti_op tutti_op_sin = {
    .struct_size = sizeof(tutti_op),
    .name = "sin",
    .version = 1,
    .doc = "sin(x): y = sin x",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = sin_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = sin_scalar,
    .samples = samples,
};
