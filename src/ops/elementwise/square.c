/* square(x): y = x * x. */
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_square;

tutti_sym(tutti_square)(tutti_sym x)
{
    return tutti__unary(&tutti_op_square, x);
}

/* dx = 2 * dy * x */
static tutti_status square_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0];
    node->input_grads[0] = tutti_mul(dy, tutti_mul(x, 2));
    return TUTTI_OK;
}

static double square_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] * x[0];
}

static int64_t square_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return tutti__wrap_mul(x[0], x[0]);
}

static const char *const samples[] = {
    "f32[2,3]",       "f32[]",        "f64[5]",          "f16[4]",
    "i32[2,3]{-4:5}", "i64[3]{-9:9}", "i8[4]{-128:128}", NULL,
};

const tutti_op tutti_op_square = {
    .struct_size = sizeof(tutti_op),
    .name = "square",
    .version = 1,
    .doc = "square(x): y = x * x",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_number,
    .gradient = square_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = square_scalar,
    .scalar_int = square_scalar_int,
    .samples = samples,
};
