/* prelu(x, slope): y = x where x > 0, else slope * x. The slope is learnt; it broadcasts. */
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_prelu;

tutti_sym(tutti_prelu)(tutti_sym x, tutti_sym slope)
{
    return tutti__binary(&tutti_op_prelu, x, slope);
}

/* dx = dy where x > 0, else slope * dy; dslope = 0 where x > 0, else x * dy */
static tutti_status prelu_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], x = node->inputs[0], slope = node->inputs[1];
    tutti_sym right = tutti_greater(x, 0);
    if (node->wanted[0])
        tutti__gradient_give(node, 0, tutti_where(right, dy, tutti_mul(dy, slope)));
    if (node->wanted[1])
        tutti__gradient_give(node, 1, tutti_where(right, 0, tutti_mul(dy, x)));
    return TUTTI_OK;
}

static double prelu_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] > 0 ? x[0] : x[1] * x[0];
}

static int64_t prelu_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] > 0 ? x[0] : tutti__wrap_mul(x[1], x[0]);
}

static const char *const samples[] = {
    "f32[2,3] f32[3]",     "f32[2,4,5]{-3:3} f32[4,1]", "f64[5] f64[]",
    "bf16[4,2] bf16[4,2]", "i32[4]{-4:4} i32[1]",       NULL,
};

const tutti_op tutti_op_prelu = {
    .struct_size = sizeof(tutti_op),
    .name = "prelu",
    .version = 1,
    .doc = "prelu(x, slope): y = x where x > 0, else slope * x",
    .category = "element-wise",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE,
    .infer = tutti__infer_numbers,
    .gradient = prelu_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = prelu_scalar,
    .scalar_int = prelu_scalar_int,
    .samples = samples,
};
