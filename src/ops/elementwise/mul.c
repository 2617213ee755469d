/* mul(a, b): y = a * b. */
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_mul;

tutti_sym(tutti_mul)(tutti_sym a, tutti_sym b)
{
    return tutti__binary(&tutti_op_mul, a, b);
}

/* da = dy * b, db = dy * a. */
static tutti_status mul_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], a = node->inputs[0], b = node->inputs[1];
    if (node->wanted[0])
        tutti__gradient_give(node, 0, tutti_mul(dy, b));
    if (node->wanted[1])
        tutti__gradient_give(node, 1, tutti_mul(dy, a));
    return TUTTI_OK;
}

static double mul_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] * x[1];
}

static int64_t mul_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return tutti__wrap_mul(x[0], x[1]);
}

static const char *const samples[] = {
    "f32[2,3] f32[2,3]",   "f32[2,3] f32[3]", "f32[4,1] f32[3]", "f64[] f64[5]",
    "bf16[2,2] bf16[2,2]", "i32[3,2] i32[2]", "i64[4] i64[1]",   NULL,
};

const tutti_op tutti_op_mul = {
    .struct_size = sizeof(tutti_op),
    .name = "mul",
    .version = 1,
    .doc = "mul(a, b): y = a * b",
    .category = "element-wise",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_COMMUTATIVE | TUTTI_OP_LINEAR_EACH,
    .infer = tutti__infer_numbers,
    .gradient = mul_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = mul_scalar,
    .scalar_int = mul_scalar_int,
    .samples = samples,
};
