/* softsign(x): y = x / (1 + |x|). */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_softsign;

tutti_sym(tutti_softsign)(tutti_sym x)
{
    return tutti__unary(&tutti_op_softsign, x);
}

/* dx = dy / (1 + |x|)^2 */
static tutti_status softsign_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    tutti_sym below = tutti_add(tutti_abs(x), 1);
    node->input_grads[0] = tutti_div(dy, tutti_square(below));
    return TUTTI_OK;
}

static double softsign_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return isinf(x[0]) ? copysign(1, x[0]) : x[0] / (1 + fabs(x[0]));
}

static const char *const samples[] = {"f32[2,3]{-3:3}", "f32[]", "f64[5]{-3:3}", "f16[4]", NULL};

const tutti_op tutti_op_softsign = {
    .struct_size = sizeof(tutti_op),
    .name = "softsign",
    .version = 1,
    .doc = "softsign(x): y = x / (1 + |x|)",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = softsign_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = softsign_scalar,
    .samples = samples,
};
