/* floordiv(a, b): y = floor(a / b). Python's //: rounds down, also for negative numbers. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_floordiv;

tutti_sym(tutti_floordiv)(tutti_sym a, tutti_sym b)
{
    return tutti__binary(&tutti_op_floordiv, a, b);
}

/* Integers: refuses a divisor of 0 before any element is written. */
static tutti_status floordiv_reference(const tutti_kernel_call *call)
{
    const tutti_view *b = &call->inputs[1];
    for (int64_t i = 0; tutti_dtype_is_int(b->dtype) && i < tutti_view_count(b); i++)
        if (tutti_view_get_int(b, i) == 0)
            return RULE_FAIL(call, TUTTI_INVALID,
                             "integer division by zero at element %lld of input 1; guard it with "
                             "tutti_where or convert to floats with tutti_cast",
                             (long long)i);
    return tutti_reference_elementwise(call);
}

static double floordiv_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    double a = x[0], b = x[1], rest = fmod(a, b);
    if (b == 0)
        return a / b;
    /* (a - rest) / b is whole but for rounding; it lies one above the floor when the rest has the
     * other sign. */
    double quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0))
        quotient -= 1;
    return quotient == 0 ? copysign(0.0, a / b) : nearbyint(quotient);
}

static int64_t floordiv_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    int64_t a = x[0], b = x[1];
    if (b == 0)
        return 0;
    if (b == -1)
        return tutti__wrap_sub(0, a); /* INT64_MIN / -1 would trap */
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static const char *const samples[] = {
    "f32[2,3]{-9:9} f32[2,3]{0.5:2}", "f32[4,1]{-9:9} f32[3]{-2:-0.5}", "i32[4]{-9:9} i32[4]{1:4}",
    "i64[2,3]{-9:9} i64[3]{-4:-1}",   "u8[5]{0:200} u8[]{3:9}",         NULL,
};

const tutti_op tutti_op_floordiv = {
    .struct_size = sizeof(tutti_op),
    .name = "floordiv",
    .version = 1,
    .doc = "floordiv(a, b): y = floor(a / b)",
    .category = "element-wise",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_FALLIBLE | TUTTI_OP_NO_GRADIENT,
    .infer = tutti__infer_numbers,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = floordiv_reference,
    .scalar = floordiv_scalar,
    .scalar_int = floordiv_scalar_int,
    .samples = samples,
};
