/* div(a, b): y = a / b. Floats only. */
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_div;

tutti_sym(tutti_div)(tutti_sym a, tutti_sym b)
{
    return tutti__binary(&tutti_op_div, a, b);
}

/* An integer quotient is no integer: the caller says which of the two is meant. */
static tutti_status div_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    for (int i = 0; i < node->input_count; i++)
        if (tutti_dtype_is_int(node->inputs[i].dtype))
            return RULE_FAIL(node, TUTTI_INVALID,
                             "input %d is %s; dividing integers: use tutti_floordiv for a whole "
                             "quotient, or tutti_cast(x, TUTTI_F32) first",
                             i, tutti_type_text(&node->inputs[i], text));
    return tutti__infer_numbers(node);
}

/* da = dy / b, db = -dy * y / b. */
static tutti_status div_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], y = node->outputs[0], b = node->inputs[1];
    if (node->wanted[0])
        tutti__gradient_give(node, 0, tutti_div(dy, b));
    if (node->wanted[1])
        tutti__gradient_give(node, 1, tutti_neg(tutti_div(tutti_mul(dy, y), b)));
    return TUTTI_OK;
}

static double div_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] / x[1];
}

static const char *const samples[] = {
    "f32[2,3] f32[2,3]{0.5:2}", "f32[2,3] f32[3]{-2:-0.5}", "f32[4,1]{0.5:2} f32[3]{0.5:2}",
    "f64[] f64[5]{0.5:2}",      "f16[4] f16[4]{0.5:2}",     NULL,
};

const tutti_op tutti_op_div = {
    .struct_size = sizeof(tutti_op),
    .name = "div",
    .version = 1,
    .doc = "div(a, b): y = a / b",
    .category = "element-wise",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_LINEAR_FIRST,
    .infer = div_infer,
    .gradient = div_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = div_scalar,
    .samples = samples,
};
