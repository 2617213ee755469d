/* selu(x): y = 1.0507 * (x where x > 0, else 1.6733 * (e^x - 1)). Keeps mean 0 and variance 1
 * through deep dense networks. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_selu;

tutti_sym(tutti_selu)(tutti_sym x)
{
    return tutti__unary(&tutti_op_selu, x);
}

/* Klambauer et al. 2017: the fixed point of mean 0, variance 1. */
#define SCALE 1.05070098735548049342
#define ALPHA 1.67326324235437728482

/* dx = dy * SCALE where x > 0, else dy * (y + SCALE * ALPHA) */
static tutti_status selu_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    tutti_sym right = tutti_greater(y, 0);
    tutti_sym falling = tutti_mul(dy, tutti_add(y, SCALE * ALPHA));
    node->input_grads[0] = tutti_where(right, tutti_mul(dy, SCALE), falling);
    return TUTTI_OK;
}

static double selu_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] > 0 ? SCALE * x[0] : SCALE * ALPHA * expm1(x[0]);
}

static const char *const samples[] = {
    "f32[2,3]{-3:3}", "f32[4,5]", "f64[5]", "f16[4]", "f32[]{=-0.7}", NULL,
};

const tutti_op tutti_op_selu = {
    .struct_size = sizeof(tutti_op),
    .name = "selu",
    .version = 1,
    .doc = "selu(x): y = 1.0507 * (x where x > 0, else 1.6733 * (e^x - 1))",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = selu_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = selu_scalar,
    .samples = samples,
};
