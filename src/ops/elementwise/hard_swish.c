/* hard_swish(x): y = x * min(max(x + 3, 0), 6) / 6. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_hard_swish;

tutti_sym(tutti_hard_swish)(tutti_sym x)
{
    return tutti__unary(&tutti_op_hard_swish, x);
}

/* dx = 0 where x <= -3, dy where x >= 3, else dy * (2 x + 3) / 6. Outside dy stays as it is: 0
 * times an infinite one would be NaN. */
static tutti_status hard_swish_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    tutti_sym slope = tutti_add(tutti_mul(x, 1.0 / 3), 0.5);
    tutti_sym right = tutti_greater_equal(x, 3);
    tutti_sym left = tutti_less_equal(x, -3);
    tutti_sym dx = tutti_where(right, dy, tutti_mul(dy, slope));
    node->input_grads[0] = tutti_where(left, 0, dx);
    return TUTTI_OK;
}

static double hard_swish_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return isnan(x[0]) ? x[0] : x[0] * (fmin(fmax(x[0] + 3, 0), 6) / 6);
}

static const char *const samples[] = {
    "f32[2,3]{=-4,-2.5,-0.3,0.4,2,3.5}", "f32[4,5]", "f64[3]{=-5,0.1,5}", "f16[4]", "f32[]", NULL,
};

const tutti_op tutti_op_hard_swish = {
    .struct_size = sizeof(tutti_op),
    .name = "hard_swish",
    .version = 1,
    .doc = "hard_swish(x): y = x * min(max(x + 3, 0), 6) / 6",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = hard_swish_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = hard_swish_scalar,
    .samples = samples,
};
