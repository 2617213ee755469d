/* logical_xor(a, b): y = a or b, not both. */
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_logical_xor;

tutti_sym(tutti_logical_xor)(tutti_sym a, tutti_sym b)
{
    return tutti__binary(&tutti_op_logical_xor, a, b);
}

static double logical_xor_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return (x[0] != 0) != (x[1] != 0);
}

static int64_t logical_xor_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return (x[0] != 0) != (x[1] != 0);
}

static const char *const samples[] = {
    "bool[4]{=0,0,1,1} bool[4]{=0,1,0,1}",
    "bool[4,1] bool[3]",
    "bool[] bool[5]",
    NULL,
};

const tutti_op tutti_op_logical_xor = {
    .struct_size = sizeof(tutti_op),
    .name = "logical_xor",
    .version = 1,
    .doc = "logical_xor(a, b): y = a or b, not both",
    .category = "element-wise",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_COMMUTATIVE | TUTTI_OP_NO_GRADIENT,
    .infer = tutti__infer_bools,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = logical_xor_scalar,
    .scalar_int = logical_xor_scalar_int,
    .samples = samples,
};
