/* ceil(x): y = smallest whole number >= x. The gradient is zero. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_ceil;

tutti_sym(tutti_ceil)(tutti_sym x)
{
    return tutti__unary(&tutti_op_ceil, x);
}

static double ceil_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return ceil(x[0]);
}

static const char *const samples[] = {
    "f32[2,3]{-9:9}", "f32[6]{=-1.5,-0.5,0.5,1.5,2.5,3}", "f64[]{-9:9}", "bf16[4]{-9:9}", NULL,
};

const tutti_op tutti_op_ceil = {
    .struct_size = sizeof(tutti_op),
    .name = "ceil",
    .version = 1,
    .doc = "ceil(x): y = smallest whole number >= x",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_NO_GRADIENT,
    .infer = tutti__infer_float,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = ceil_scalar,
    .samples = samples,
};
