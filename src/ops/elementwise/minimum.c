/* minimum(a, b): y = min(a, b). NaN when one is NaN; 0 is larger than -0. */
#include "base/extremes.h"
#include "ops/build.h"
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_minimum;

tutti_sym(tutti_minimum)(tutti_sym a, tutti_sym b)
{
    return tutti__binary(&tutti_op_minimum, a, b);
}

/* da = dy where a <= b, db = dy elsewhere. */
static tutti_status minimum_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], none = tutti__scalar_like(dy, 0);
    tutti_sym first = tutti_less_equal(node->inputs[0], node->inputs[1]);
    if (node->wanted[0])
        tutti__gradient_give(node, 0, tutti_where(first, dy, none));
    if (node->wanted[1])
        tutti__gradient_give(node, 1, tutti_where(first, none, dy));
    return TUTTI_OK;
}

static double minimum_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return tutti__minimum(x[0], x[1]);
}

static int64_t minimum_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] <= x[1] ? x[0] : x[1];
}

static const char *const samples[] = {
    "f32[2,3] f32[2,3]",   "f32[2,3] f32[3]", "f32[4,1] f32[3]", "f64[] f64[5]",
    "bf16[2,2] bf16[2,2]", "i32[3,2] i32[2]", "i64[4] i64[1]",   NULL,
};

const tutti_op tutti_op_minimum = {
    .struct_size = sizeof(tutti_op),
    .name = "minimum",
    .version = 1,
    .doc = "minimum(a, b): y = min(a, b)",
    .category = "element-wise",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_COMMUTATIVE,
    .infer = tutti__infer_numbers,
    .gradient = minimum_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = minimum_scalar,
    .scalar_int = minimum_scalar_int,
    .samples = samples,
};
