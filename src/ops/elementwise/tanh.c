/* tanh(x): y = (e^x - e^-x) / (e^x + e^-x). */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_tanh;

tutti_sym(tutti_tanh)(tutti_sym x)
{
    return tutti__unary(&tutti_op_tanh, x);
}

/* dx = dy * (1 - y^2) */
static tutti_status tanh_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    tutti_sym slope = tutti_add(tutti_neg(tutti_square(y)), 1);
    node->input_grads[0] = tutti_mul(dy, slope);
    return TUTTI_OK;
}

static double tanh_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return tanh(x[0]);
}

static const char *const samples[] = {"f32[2,3]{-3:3}", "f32[]", "f64[5]{-3:3}", "f16[4]", NULL};

const tutti_op tutti_op_tanh = {
    .struct_size = sizeof(tutti_op),
    .name = "tanh",
    .version = 1,
    .doc = "tanh(x): y = (e^x - e^-x) / (e^x + e^-x)",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = tanh_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = tanh_scalar,
    .samples = samples,
};
