/* matmul_integer.c: products of matrices of bytes, as i32. */
#include "ops/build.h"
#include "ops/quantized/quantized.h"

static tutti_status matmul_integer_infer(tutti_infer *node)
{
    return tutti__int_matmul_infer(node, tutti__matmul_integer_inputs(), TUTTI_I32);
}

static tutti_status matmul_integer_reference(const tutti_kernel_call *call)
{
    return tutti__int_matmul_reference(call, tutti__matmul_integer_inputs());
}

static void matmul_integer_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__int_matmul_cost(node, tutti__matmul_integer_inputs(), ret);
}

static int matmul_integer_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__int_matmul_split(node, tutti__matmul_integer_inputs(), capacity, ret);
}

extern const tutti_op tutti_op_matmul_integer;
tutti_sym tutti_matmul_integer_with(tutti_sym a, tutti_sym b,
                                    const tutti_matmul_integer_options *given)
{
    RULE_OPTIONS(tutti_matmul_integer_options, o, given);
    tutti_sym inputs[] = {a, b, o.a_zero, o.b_zero};
    if (o.b_zero.node)
        inputs[2] = tutti__zero_or(o.a_zero, a);
    return tutti__nary(&tutti_op_matmul_integer,
                       o.b_zero.node   ? 4
                       : o.a_zero.node ? 3
                                       : 2,
                       inputs, 0, NULL);
}

static const char *const samples[] = {
    "u8[3,5]{0:256} i8[5,4]{-128:128}",
    "u8[2,3,5]{0:256} u8[5,4]{0:256} u8[]{=100} u8[4]{0:256}",
    "i8[3,2]{-128:128} u8[2,3]{0:256} i8[3]{-128:128} u8[1]{=7}",
    "i8[2,1,3,2]{-128:128} i8[4,2,5]{-128:128} i8[]{=-3}",
    "u8[2,0] i8[0,3]",
    NULL,
};

const tutti_op tutti_op_matmul_integer = {
    .struct_size = sizeof(tutti_op),
    .name = "matmul_integer",
    .version = 1,
    .doc =
        "matmul_integer(a, b, a_zero, b_zero): y[i, j] = sum over k of (a[i, k] - a_zero) * (b[k, j] - b_zero), as i32",
    .category = "quantized",
    .min_inputs = 2,
    .max_inputs = 4,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .infer = matmul_integer_infer,
    .cost = matmul_integer_cost,
    .split = matmul_integer_split,
    .reference = matmul_integer_reference,
    .samples = samples,
};
