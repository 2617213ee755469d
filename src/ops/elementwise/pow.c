/* pow(a, b): y = a ^ b. */
#include "ops/build.h"
#include "ops/elementwise/elementwise.h"

#include <math.h>

extern const tutti_op tutti_op_pow;

tutti_sym(tutti_pow)(tutti_sym a, tutti_sym b)
{
    return tutti__binary(&tutti_op_pow, a, b);
}

/* Integers: a negative power is no integer. */
static tutti_status pow_reference(const tutti_kernel_call *call)
{
    const tutti_view *b = &call->inputs[1];
    for (int64_t i = 0; tutti_dtype_is_int(b->dtype) && i < tutti_view_count(b); i++)
        if (tutti_view_get_int(b, i) < 0)
            return RULE_FAIL(
                call, TUTTI_INVALID,
                "integer raised to the negative power %lld at element %lld of input 1; "
                "convert to floats with tutti_cast",
                (long long)tutti_view_get_int(b, i), (long long)i);
    return tutti_reference_elementwise(call);
}

/* da = dy * b * a^(b - 1), and 0 where b is 0: there a may be 0. The guard stands before the power,
 * so that the gradient of this gradient is finite too. */
static tutti_sym base_gradient(const tutti_gradient_call *node)
{
    tutti_sym a = node->inputs[0], b = node->inputs[1];
    tutti_sym flat = tutti_equal(b, 0);
    tutti_sym lower = tutti_where(flat, 1, tutti_add(b, -1));
    return tutti_mul(node->output_grads[0], tutti_mul(b, tutti_pow(a, lower)));
}

/* db = dy * y * log(a) where a > 0, else 0: there y may be no number, or infinite. */
static tutti_sym exponent_gradient(const tutti_gradient_call *node)
{
    tutti_sym a = node->inputs[0], y = node->outputs[0], one = tutti__scalar_like(a, 1);
    tutti_sym positive = tutti_greater(a, 0);
    tutti_sym log_a = tutti_log(tutti_where(positive, a, one));
    tutti_sym power = tutti_where(positive, y, 0);
    return tutti_mul(node->output_grads[0], tutti_mul(power, log_a));
}

/* The gradients of both, summed over the axes along which each was repeated. */
static tutti_status pow_gradient(tutti_gradient_call *node)
{
    if (node->wanted[0])
        tutti__gradient_give(node, 0, base_gradient(node));
    if (node->wanted[1])
        tutti__gradient_give(node, 1, exponent_gradient(node));
    return TUTTI_OK;
}

static double pow_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    return pow(x[0], x[1]);
}

static int64_t pow_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    int64_t power = x[0], result = 1;
    for (uint64_t bits = x[1] < 0 ? 0 : (uint64_t)x[1]; bits != 0; bits >>= 1) {
        if (bits & 1)
            result = tutti__wrap_mul(result, power);
        power = tutti__wrap_mul(power, power);
    }
    return result;
}

static const char *const samples[] = {
    "f32[2,3]{0.2:2} f32[2,3]{-2:2}",
    "f32[2,3]{0.2:2} f32[]{=3}",
    "f32[4,1]{0.5:2} f32[3]{-1:3}",
    "f64[5]{0.2:2} f64[5]",
    "bf16[4]{0.5:2} bf16[4]",
    "i32[4]{-4:5} i32[4]{0:5}",
    NULL,
};

const tutti_op tutti_op_pow = {
    .struct_size = sizeof(tutti_op),
    .name = "pow",
    .version = 1,
    .doc = "pow(a, b): y = a ^ b",
    .category = "element-wise",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_FALLIBLE,
    .infer = tutti__infer_numbers,
    .gradient = pow_gradient,
    .cost = tutti__cost_transcendental,
    .split = tutti_split_elementwise,
    .reference = pow_reference,
    .scalar = pow_scalar,
    .scalar_int = pow_scalar_int,
    .samples = samples,
};
