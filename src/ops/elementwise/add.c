/* add(a, b): y = a + b. */
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_add;

tutti_sym(tutti_add)(tutti_sym a, tutti_sym b)
{
    return tutti__binary(&tutti_op_add, a, b);
}

/* da = dy, db = dy, each summed over the axes along which it was repeated. */
static tutti_status add_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0];
    tutti__gradient_give(node, 0, dy);
    tutti__gradient_give(node, 1, dy);
    return TUTTI_OK;
}

static double add_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] + x[1];
}

static int64_t add_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return tutti__wrap_add(x[0], x[1]);
}

static const char *const samples[] = {
    "f32[2,3] f32[2,3]",
    "f32[2,3] f32[3]",
    "f32[4,1] f32[3]",
    "f64[] f64[5]",
    "bf16[2,2] bf16[2,2]",
    "i32[3,2] i32[2]",
    "i64[4] i64[1]",
    "f32[0,3] f32[3]",
    "u8[3]{250:256} u8[3]{0:9}",
    NULL,
};

const tutti_op tutti_op_add = {
    .struct_size = sizeof(tutti_op),
    .name = "add",
    .version = 1,
    .doc = "add(a, b): y = a + b",
    .category = "element-wise",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_COMMUTATIVE | TUTTI_OP_LINEAR,
    .infer = tutti__infer_numbers,
    .gradient = add_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = add_scalar,
    .scalar_int = add_scalar_int,
    .samples = samples,
};
