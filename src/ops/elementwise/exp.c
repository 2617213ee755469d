/* exp(x): y = e^x. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_exp;

tutti_sym(tutti_exp)(tutti_sym x)
{
    return tutti__unary(&tutti_op_exp, x);
}

/* dx = dy * y */
static tutti_status exp_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    node->input_grads[0] = tutti_mul(dy, y);
    return TUTTI_OK;
}

static double exp_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return exp(x[0]);
}

static const char *const samples[] = {"f32[2,3]", "f32[]", "f64[5]", "bf16[4]", "f32[0,3]", NULL};

const tutti_op tutti_op_exp = {
    .struct_size = sizeof(tutti_op),
    .name = "exp",
    .version = 1,
    .doc = "exp(x): y = e^x",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = exp_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = exp_scalar,
    .samples = samples,
};
