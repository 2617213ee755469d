/* atan(x): y = arc tangent of x. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_atan;

tutti_sym(tutti_atan)(tutti_sym x)
{
    return tutti__unary(&tutti_op_atan, x);
}

/* dx = dy / (1 + x^2) */
static tutti_status atan_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    node->input_grads[0] = tutti_div(dy, tutti_add(tutti_square(x), 1));
    return TUTTI_OK;
}

static double atan_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return atan(x[0]);
}

static const char *const samples[] = {"f32[2,3]{-3:3}", "f32[]", "f64[5]{-3:3}", "f16[4]", NULL};

const tutti_op tutti_op_atan = {
    .struct_size = sizeof(tutti_op),
    .name = "atan",
    .version = 1,
    .doc = "atan(x): y = arc tangent of x",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = atan_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = atan_scalar,
    .samples = samples,
};
