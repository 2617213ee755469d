/* mod(a, b): y = a - b * floor(a / b). Python's %: the result has b's sign. */
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_mod;

tutti_sym(tutti_mod)(tutti_sym a, tutti_sym b)
{
    return tutti__binary(&tutti_op_mod, a, b);
}

/* Integers: refuses a divisor of 0 before any element is written. */
static tutti_status mod_reference(const tutti_kernel_call *call)
{
    const tutti_view *b = &call->inputs[1];
    for (int64_t i = 0; tutti_dtype_is_int(b->dtype) && i < tutti_view_count(b); i++)
        if (tutti_view_get_int(b, i) == 0)
            return RULE_FAIL(call, TUTTI_INVALID,
                             "integer modulo zero at element %lld of input 1; guard it with "
                             "tutti_where or convert to floats with tutti_cast",
                             (long long)i);
    return tutti_reference_elementwise(call);
}

/* da = dy, db = -dy * floor(a / b). */
static tutti_status mod_gradient(tutti_gradient_call *node)
{
    tutti_sym dy = node->output_grads[0], a = node->inputs[0], b = node->inputs[1];
    tutti__gradient_give(node, 0, dy);
    if (node->wanted[1])
        tutti__gradient_give(node, 1, tutti_neg(tutti_mul(dy, tutti_floordiv(a, b))));
    return TUTTI_OK;
}

static double mod_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    double a = x[0], b = x[1], rest = fmod(a, b);
    if (rest != 0 && (rest < 0) != (b < 0))
        rest += b;
    return rest == 0 ? copysign(0.0, b) : rest;
}

static int64_t mod_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    int64_t a = x[0], b = x[1];
    if (b == 0 || b == -1)
        return 0; /* INT64_MIN % -1 would trap */
    int64_t rest = a % b;
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static const char *const samples[] = {
    "f32[4]{=1.3,-1.3,7.2,-0.4} f32[4]{=0.5,0.5,-3,2}",
    "f32[2,2]{=5.2,-5.2,0.7,3.1} f32[]{=2}",
    "i32[4]{-9:9} i32[4]{1:4}",
    "i64[2,3]{-9:9} i64[3]{-4:-1}",
    "u8[5]{0:200} u8[]{3:9}",
    NULL,
};

const tutti_op tutti_op_mod = {
    .struct_size = sizeof(tutti_op),
    .name = "mod",
    .version = 1,
    .doc = "mod(a, b): y = a - b * floor(a / b)",
    .category = "element-wise",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_FALLIBLE,
    .infer = tutti__infer_numbers,
    .gradient = mod_gradient,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = mod_reference,
    .scalar = mod_scalar,
    .scalar_int = mod_scalar_int,
    .samples = samples,
};
