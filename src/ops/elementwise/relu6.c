/* relu6(x): y = min(max(x, 0), 6). NaN stays NaN, -0 becomes 0. */
#include "ops/build.h"
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_relu6;

tutti_sym(tutti_relu6)(tutti_sym x)
{
    return tutti__unary(&tutti_op_relu6, x);
}

/* dx = dy where 0 < y < 6, else 0 */
static tutti_status relu6_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0];
    tutti_sym none = tutti__scalar_like(dy, 0);
    tutti_sym inside = tutti_logical_and(tutti_greater(y, none), tutti_less(y, 6));
    node->input_grads[0] = tutti_where(inside, dy, none);
    return TUTTI_OK;
}

static double relu6_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] <= 0 ? 0 : x[0] > 6 ? 6 : x[0];
}

static int64_t relu6_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] < 0 ? 0 : x[0] > 6 ? 6 : x[0];
}

static const char *const samples[] = {
    "f32[2,3]{=-2,-0.3,0.4,3,5.5,7}",
    "f32[4,5]",
    "f64[3]{=-1,2,9}",
    "f16[4]{=-1,1,5,8}",
    "i32[4]{-4:12}",
    NULL,
};

const tutti_op tutti_op_relu6 = {
    .struct_size = sizeof(tutti_op),
    .name = "relu6",
    .version = 1,
    .doc = "relu6(x): y = min(max(x, 0), 6)",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_number,
    .gradient = relu6_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = relu6_scalar,
    .scalar_int = relu6_scalar_int,
    .samples = samples,
};
