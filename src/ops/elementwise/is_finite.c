/* is_finite(x): y = x is neither infinite nor NaN. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_is_finite;

tutti_sym(tutti_is_finite)(tutti_sym x)
{
    return tutti__unary(&tutti_op_is_finite, x);
}

static double is_finite_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return isfinite(x[0]) != 0;
}

static const char *const samples[] = {
    "f32[5]{=1,-2,0,inf,nan}",
    "f64[4]{=nan,-inf,0,1e300}",
    "f16[4]{=inf,1,nan,-3}",
    "f32[2,3]",
    NULL,
};

const tutti_op tutti_op_is_finite = {
    .struct_size = sizeof(tutti_op),
    .name = "is_finite",
    .version = 1,
    .doc = "is_finite(x): y = x is neither infinite nor NaN",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_NO_GRADIENT,
    .infer = tutti__infer_float_test,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = is_finite_scalar,
    .samples = samples,
};
