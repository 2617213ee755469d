/* logical_not(x): y = not x. */
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_logical_not;

tutti_sym(tutti_logical_not)(tutti_sym x)
{
    return tutti__unary(&tutti_op_logical_not, x);
}

static double logical_not_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] == 0;
}

static int64_t logical_not_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] == 0;
}

static const char *const samples[] = {"bool[2]{=0,1}", "bool[2,3]", "bool[]", NULL};

const tutti_op tutti_op_logical_not = {
    .struct_size = sizeof(tutti_op),
    .name = "logical_not",
    .version = 1,
    .doc = "logical_not(x): y = not x",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_NO_GRADIENT,
    .infer = tutti__infer_bools,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = logical_not_scalar,
    .scalar_int = logical_not_scalar_int,
    .samples = samples,
};
