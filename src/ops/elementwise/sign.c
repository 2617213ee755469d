/* sign(x): y = -1 where x < 0, 0 where x = 0, 1 where x > 0. NaN stays NaN; the gradient is
 * zero. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_sign;

tutti_sym(tutti_sign)(tutti_sym x)
{
    return tutti__unary(&tutti_op_sign, x);
}

static double sign_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return isnan(x[0]) ? x[0] : (x[0] > 0) - (x[0] < 0);
}

static int64_t sign_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return (x[0] > 0) - (x[0] < 0);
}

static const char *const samples[] = {
    "f32[2,3]",     "f32[]",           "f64[5]",          "f16[4]", "i32[2,3]{-4:5}",
    "i64[3]{-9:9}", "i8[4]{-128:128}", "f32[3]{=-2,0,5}", NULL,
};

const tutti_op tutti_op_sign = {
    .struct_size = sizeof(tutti_op),
    .name = "sign",
    .version = 1,
    .doc = "sign(x): y = -1 where x < 0, 0 where x = 0, 1 where x > 0",
    .category = "element-wise",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_NO_GRADIENT,
    .infer = tutti__infer_number,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = sign_scalar,
    .scalar_int = sign_scalar_int,
    .samples = samples,
};
