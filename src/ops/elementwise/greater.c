/* greater(a, b): y = a > b. Bool; no gradient flows. */
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_greater;

tutti_sym(tutti_greater)(tutti_sym a, tutti_sym b)
{
    return tutti__binary(&tutti_op_greater, a, b);
}

static double greater_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] > x[1];
}

static int64_t greater_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] > x[1];
}

static const char *const samples[] = {
    "f32[2,3]{=1,2,3,4,5,6} f32[2,3]{=1,3,2,4,4,7}",
    "f32[4,1] f32[3]",
    "f64[] f64[5]",
    "f16[2,2] f16[2,2]",
    "i32[3,2] i32[2]",
    "i64[4] i64[1]",
    "u8[3] u8[3]",
    "bool[6] bool[6]",
    NULL,
};

const tutti_op tutti_op_greater = {
    .struct_size = sizeof(tutti_op),
    .name = "greater",
    .version = 1,
    .doc = "greater(a, b): y = a > b",
    .category = "element-wise",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_NO_GRADIENT,
    .infer = tutti_infer_compare,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = greater_scalar,
    .scalar_int = greater_scalar_int,
    .samples = samples,
};
