/* mish(x): y = x * tanh(softplus(x)), softplus(x) = log(1 + e^x). */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_mish;

tutti_sym(tutti_mish)(tutti_sym x)
{
    return tutti__unary(&tutti_op_mish, x);
}

/* dx = dy * (t + x * sigmoid(x) * (1 - t^2)), t = tanh(softplus(x)) */
static tutti_status mish_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    tutti_sym t = tutti_tanh(tutti_softplus(x));
    tutti_sym rest = tutti_add(tutti_neg(tutti_square(t)), 1);
    tutti_sym slope = tutti_add(t, tutti_mul(tutti_silu(x), rest));
    node->input_grads[0] = tutti_mul(dy, slope);
    return TUTTI_OK;
}

/* tanh(log(1 + e^x)) = n / (n + 2), n = e^x (e^x + 2); written with e^-|x|, which does not overflow
 */
static double mish_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    double e = exp(-fabs(x[0])), n = x[0] > 0 ? 1 + 2 * e : e * (e + 2);
    return x[0] * n / (x[0] > 0 ? n + 2 * e * e : n + 2);
}

static const char *const samples[] = {
    "f32[2,3]{-3:3}", "f32[]", "f64[5]{-3:3}", "f16[4]", "bf16[3]", "f32[3]{=-80,0.1,90}", NULL,
};

const tutti_op tutti_op_mish = {
    .struct_size = sizeof(tutti_op),
    .name = "mish",
    .version = 1,
    .doc = "mish(x): y = x * tanh(log(1 + e^x))",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = mish_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = mish_scalar,
    .samples = samples,
};
