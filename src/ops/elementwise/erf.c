/* erf(x): y = 2 / sqrt(pi) * integral of e^(-t^2) for t from 0 to x. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_erf;

tutti_sym(tutti_erf)(tutti_sym x)
{
    return tutti__unary(&tutti_op_erf, x);
}

/* dx = dy * 2 / sqrt(pi) * e^(-x^2) */
static tutti_status erf_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    tutti_sym bell = tutti_exp(tutti_neg(tutti_square(x)));
    node->input_grads[0] = tutti_mul(dy, tutti_mul(bell, 2 / sqrt(M_PI)));
    return TUTTI_OK;
}

static double erf_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return erf(x[0]);
}

static const char *const samples[] = {"f32[2,3]{-3:3}", "f32[]", "f64[5]{-3:3}", "f16[4]", NULL};

const tutti_op tutti_op_erf = {
    .struct_size = sizeof(tutti_op),
    .name = "erf",
    .version = 1,
    .doc = "erf(x): y = 2 / sqrt(pi) * integral of e^(-t^2) for t from 0 to x",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = erf_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = erf_scalar,
    .samples = samples,
};
