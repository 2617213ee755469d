/* round(x): y = whole number nearest to x, halves to the even one. The gradient is zero. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_round;

tutti_sym(tutti_round)(tutti_sym x)
{
    return tutti__unary(&tutti_op_round, x);
}

static double round_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return nearbyint(x[0]);
}

static const char *const samples[] = {
    "f32[2,3]{-9:9}", "f32[6]{=-1.5,-0.5,0.5,1.5,2.5,3}", "f64[]{-9:9}", "bf16[4]{-9:9}", NULL,
};

const tutti_op tutti_op_round = {
    .struct_size = sizeof(tutti_op),
    .name = "round",
    .version = 1,
    .doc = "round(x): y = whole number nearest to x, halves to the even one",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_NO_GRADIENT,
    .infer = tutti__infer_float,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = round_scalar,
    .samples = samples,
};
