/* sigmoid(x): y = 1 / (1 + e^-x). */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_sigmoid;

tutti_sym(tutti_sigmoid)(tutti_sym x)
{
    return tutti__unary(&tutti_op_sigmoid, x);
}

/* dx = dy * y * (1 - y) */
static tutti_status sigmoid_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    tutti_sym rest = tutti_add(tutti_neg(y), 1);
    node->input_grads[0] = tutti_mul(dy, tutti_mul(y, rest));
    return TUTTI_OK;
}

static double sigmoid_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    /* The exponent is never positive, so nothing overflows. */
    double small = exp(-fabs(x[0]));
    return x[0] >= 0 ? 1 / (1 + small) : small / (1 + small);
}

static const char *const samples[] = {
    "f32[2,3]{-3:3}", "f32[]", "f64[5]{-3:3}", "f16[4]", "f32[3]{=-90,0,90}", NULL,
};

const tutti_op tutti_op_sigmoid = {
    .struct_size = sizeof(tutti_op),
    .name = "sigmoid",
    .version = 1,
    .doc = "sigmoid(x): y = 1 / (1 + e^-x)",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = sigmoid_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = sigmoid_scalar,
    .samples = samples,
};
