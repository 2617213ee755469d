/* hard_sigmoid(x): y = min(max(x + 3, 0), 6) / 6. As Keras 3 has it. */
#include "ops/build.h"
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_hard_sigmoid;

tutti_sym(tutti_hard_sigmoid)(tutti_sym x)
{
    return tutti__unary(&tutti_op_hard_sigmoid, x);
}

/* dx = dy / 6 where 0 < y < 1, else 0 */
static tutti_status hard_sigmoid_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    tutti_sym none = tutti__scalar_like(dy, 0);
    tutti_sym inside = tutti_logical_and(tutti_greater(y, none), tutti_less(y, 1));
    node->input_grads[0] = tutti_where(inside, tutti_mul(dy, 1.0 / 6), none);
    return TUTTI_OK;
}

static double hard_sigmoid_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return isnan(x[0]) ? x[0] : fmin(fmax(x[0] + 3, 0), 6) / 6;
}

static const char *const samples[] = {
    "f32[2,3]{=-4,-2.5,-0.3,0.4,2,3.5}", "f32[4,5]", "f64[3]{=-5,0.1,5}", "f16[4]", NULL,
};

const tutti_op tutti_op_hard_sigmoid = {
    .struct_size = sizeof(tutti_op),
    .name = "hard_sigmoid",
    .version = 1,
    .doc = "hard_sigmoid(x): y = min(max(x + 3, 0), 6) / 6",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_float,
    .gradient = hard_sigmoid_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = hard_sigmoid_scalar,
    .samples = samples,
};
