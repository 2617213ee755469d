/* qlinear_matmul.c: products of quantised matrices, quantised again. */
#include "ops/build.h"
#include "ops/quantized/quantized.h"

static tutti_status qlinear_matmul_infer(tutti_infer *node)
{
    return tutti__int_matmul_infer(node, tutti__qlinear_matmul_inputs(), node->inputs[7].dtype);
}

static tutti_status qlinear_matmul_reference(const tutti_kernel_call *call)
{
    return tutti__int_matmul_reference(call, tutti__qlinear_matmul_inputs());
}

static void qlinear_matmul_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__int_matmul_cost(node, tutti__qlinear_matmul_inputs(), ret);
}

static int qlinear_matmul_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__int_matmul_split(node, tutti__qlinear_matmul_inputs(), capacity, ret);
}

extern const tutti_op tutti_op_qlinear_matmul;
tutti_sym tutti_qlinear_matmul_with(tutti_sym a, tutti_sym b,
                                    const tutti_qlinear_matmul_options *given)
{
    RULE_OPTIONS(tutti_qlinear_matmul_options, o, given);
    if (!o.a_scale.node || !o.b_scale.node || !o.y_scale.node)
        return tutti__no_scale(a, "qlinear_matmul", ".a_scale, .b_scale and .y_scale");
    tutti_sym inputs[] = {a,
                          o.a_scale,
                          tutti__zero_or(o.a_zero, a),
                          b,
                          o.b_scale,
                          tutti__zero_or(o.b_zero, b),
                          o.y_scale,
                          tutti__zero_or(o.y_zero, a)};
    return tutti__nary(&tutti_op_qlinear_matmul, 8, inputs, 0, NULL);
}

static const char *const samples[] = {
    "u8[3,5]{0:256} f32[]{=0.02} u8[]{=128} i8[5,4]{-128:128} f32[]{=0.03} i8[]{=0} f32[]{=0.1} u8[]{=120}",
    "i8[2,3,5]{-128:128} f32[]{=0.02} i8[]{=1} u8[5,4]{0:256} f32[4]{0.01:0.1} u8[4]{0:256} f32[]{=0.2} i8[]{=2}",
    "i8[3,5]{-128:128} f32[3]{0.01:0.1} i8[3]{-9:9} i8[5,2]{-128:128} f32[1]{=0.02} i8[]{=1} f32[]{=0.3} i8[]{=0}",
    NULL,
};

const tutti_op tutti_op_qlinear_matmul = {
    .struct_size = sizeof(tutti_op),
    .name = "qlinear_matmul",
    .version = 1,
    .doc =
        "qlinear_matmul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero): y = round(sum over k of (a - a_zero) * (b - b_zero) * a_scale * b_scale / y_scale) + y_zero",
    .category = "quantized",
    .min_inputs = 8,
    .max_inputs = 8,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .infer = qlinear_matmul_infer,
    .cost = qlinear_matmul_cost,
    .split = qlinear_matmul_split,
    .reference = qlinear_matmul_reference,
    .samples = samples,
};
