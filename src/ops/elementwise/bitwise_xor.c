/* bitwise_xor(a, b): y = a ^ b, bit by bit, of integers. */
#include "ops/elementwise/elementwise.h"

extern const tutti_op tutti_op_bitwise_xor;

tutti_sym(tutti_bitwise_xor)(tutti_sym a, tutti_sym b)
{
    return tutti__binary(&tutti_op_bitwise_xor, a, b);
}

static tutti_status bitwise_xor_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    if (!tutti_dtype_is_int(node->inputs[0].dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "input 0 is %s, needs integers",
                         tutti_type_text(&node->inputs[0], text));
    return tutti_infer_broadcast(node);
}

static int64_t bitwise_xor_scalar_int(const int64_t *x, const tutti_attr *attrs, int attr_count)
{
    return x[0] ^ x[1];
}

/* Integers below 2^53 are exact. */
static double bitwise_xor_scalar(const double *x, const tutti_attr *attrs, int attr_count)
{
    int64_t whole[2] = {(int64_t)x[0], (int64_t)x[1]};
    return (double)bitwise_xor_scalar_int(whole, attrs, attr_count);
}

static const char *const samples[] = {
    "i32[2,3]{-9:9} i32[2,3]{-9:9}",
    "i64[4,1]{0:99} i64[3]{0:99}",
    "u8[5]{0:255} u8[]{0:255}",
    "i8[4]{-128:127} i8[4]{-128:127}",
    NULL,
};

const tutti_op tutti_op_bitwise_xor = {
    .struct_size = sizeof(tutti_op),
    .name = "bitwise_xor",
    .version = 1,
    .doc = "bitwise_xor(a, b): y = a ^ b, bit by bit",
    .category = "element-wise",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_ELEMENTWISE | TUTTI_OP_COMMUTATIVE | TUTTI_OP_NO_GRADIENT,
    .infer = bitwise_xor_infer,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = tutti_reference_elementwise,
    .scalar = bitwise_xor_scalar,
    .scalar_int = bitwise_xor_scalar_int,
    .samples = samples,
};
