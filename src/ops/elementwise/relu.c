/* relu(x): y = max(x, 0). NaN stays NaN, -0 becomes 0. */
#include "ops/build.h"
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_relu;

tutti_sym(tutti_relu)(tutti_sym x)
{
    return tutti__unary(&tutti_op_relu, x);
}

/* dx = dy where y > 0, else 0 */
static tutti_status relu_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    tutti_sym none = tutti__scalar_like(dy, 0);
    node->input_grads[0] = tutti_where(tutti_greater(y, none), dy, none);
    return TUTTI_OK;
}

static double relu_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] > 0 || isnan(x[0]) ? x[0] : 0;
}

static int64_t relu_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] > 0 ? x[0] : 0;
}

static const char *const samples[] = {
    "f32[2,3]{-3:3}", "f32[4,5]", "f64[5]", "f16[4]", "f32[]{=-0.7}", "i32[4]{-4:5}", NULL,
};

const tutti_op tutti_op_relu = {
    .struct_size = sizeof(tutti_op),
    .name = "relu",
    .version = 1,
    .doc = "relu(x): y = max(x, 0)",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_number,
    .gradient = relu_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = relu_scalar,
    .scalar_int = relu_scalar_int,
    .samples = samples,
};
