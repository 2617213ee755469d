/* neg(x): y = -x. */
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_neg;

tutti_sym(tutti_neg)(tutti_sym x)
{
    return tutti__unary(&tutti_op_neg, x);
}

/* dx = -dy */
static tutti_status neg_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0];
    node->input_grads[0] = tutti_neg(dy);
    return TUTTI_OK;
}

static double neg_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return -x[0];
}

static int64_t neg_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return tutti__wrap_sub(0, x[0]);
}

static const char *const samples[] = {
    "f32[2,3]",       "f32[]",        "f64[5]",          "f16[4]",
    "i32[2,3]{-4:5}", "i64[3]{-9:9}", "i8[4]{-128:128}", NULL,
};

const tutti_op tutti_op_neg = {
    .struct_size = sizeof(tutti_op),
    .name = "neg",
    .version = 1,
    .doc = "neg(x): y = -x",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_LINEAR,
    .infer = tutti__infer_number,
    .gradient = neg_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = neg_scalar,
    .scalar_int = neg_scalar_int,
    .samples = samples,
};
