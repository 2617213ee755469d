/* sinh(x): y = (e^x - e^-x) / 2. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_sinh;

tutti_sym(tutti_sinh)(tutti_sym x)
{
    return tutti__unary(&tutti_op_sinh, x);
}

/* dx = dy * cosh(x) */
static tutti_status sinh_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    node->input_grads[0] = tutti_mul(dy, tutti_cosh(x));
    return TUTTI_OK;
}

static double sinh_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return sinh(x[0]);
}

static const char *const samples[] = {"f32[2,3]", "f32[]", "f64[5]", "bf16[4]", NULL};

const tutti_op tutti_op_sinh = {
    .struct_size = sizeof(tutti_op),
    .name = "sinh",
    .version = 1,
    .doc = "sinh(x): y = (e^x - e^-x) / 2",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = sinh_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = sinh_scalar,
    .samples = samples,
};
