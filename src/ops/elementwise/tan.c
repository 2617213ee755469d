/* tan(x): y = tan x. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_tan;

tutti_sym(tutti_tan)(tutti_sym x)
{
    return tutti__unary(&tutti_op_tan, x);
}

/* dx = dy * (1 + y^2) */
static tutti_status tan_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    node->input_grads[0] = tutti_mul(dy, tutti_add(tutti_square(y), 1));
    return TUTTI_OK;
}

static double tan_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return tan(x[0]);
}

static const char *const samples[] = {"f32[2,3]", "f32[]", "f64[5]", "bf16[4]", NULL};

const tutti_op tutti_op_tan = {
    .struct_size = sizeof(tutti_op),
    .name = "tan",
    .version = 1,
    .doc = "tan(x): y = tan x",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = tan_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = tan_scalar,
    .samples = samples,
};
