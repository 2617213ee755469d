/* abs(x): y = |x|. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_abs;

tutti_sym(tutti_abs)(tutti_sym x)
{
    return tutti__unary(&tutti_op_abs, x);
}

/* dx = dy * sign(x) */
static tutti_status abs_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    node->input_grads[0] = tutti_mul(dy, tutti_sign(x));
    return TUTTI_OK;
}

static double abs_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return fabs(x[0]);
}

static int64_t abs_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] < 0 ? tutti__wrap_sub(0, x[0]) : x[0];
}

static const char *const samples[] = {
    "f32[2,3]",       "f32[]",        "f64[5]",          "f16[4]",
    "i32[2,3]{-4:5}", "i64[3]{-9:9}", "i8[4]{-128:128}", NULL,
};

const tutti_op tutti_op_abs = {
    .struct_size = sizeof(tutti_op),
    .name = "abs",
    .version = 1,
    .doc = "abs(x): y = |x|",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_number,
    .gradient = abs_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = abs_scalar,
    .scalar_int = abs_scalar_int,
    .samples = samples,
};
