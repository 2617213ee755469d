/* dequantize_linear.c: the floats that bytes, or sums of their products, stand for. */
#include "ops/quantized/quantized.h"

static tutti_status dequantize_linear_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *q = &node->inputs[0];
    if (!tutti__is_byte(q->dtype) && q->dtype != TUTTI_I32)
        return RULE_FAIL(node, TUTTI_INVALID, "the input is %s, needs i8, u8 or i32",
                         tutti_type_text(q, text));
    if (node->input_count > 2)
        TUTTI_TRY(tutti__shape_same_dtype(node, 2));
    TUTTI_TRY(tutti__need_scale(node));
    return tutti__shape_output(node, 0, node->inputs[1].dtype, q->rank, q->dims);
}

static tutti_status dequantize_linear_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *scale = &call->inputs[1], *y = &call->outputs[0];
    tutti_quantum q = tutti__quantum(call);
    int64_t count = tutti_view_count(x);
    for (int64_t i = 0; i < count; i++) {
        int64_t k = tutti__quantum_at(&q, i);
        int64_t zero = call->input_count > 2 ? tutti_view_get_int(&call->inputs[2], k) : 0;
        double moved = (double)(tutti_view_get_int(x, i) - zero), by = tutti_view_get(scale, k);
        tutti_view_set(y, i, y->dtype == TUTTI_F64 ? moved * by : (float)moved * (float)by);
    }
    return TUTTI_OK;
}

extern const tutti_op tutti_op_dequantize_linear;
tutti_sym tutti_dequantize_linear_with(tutti_sym q, tutti_sym scale,
                                       const tutti_quantize_linear_options *options)
{
    RULE_OPTIONS(tutti_quantize_linear_options, o, options);
    tutti_sym inputs[] = {q, scale, o.zero};
    tutti_attr attrs[] = {TUTTI_INT("axis", o.axis), TUTTI_INT("block", o.block)};
    return tutti__nary(&tutti_op_dequantize_linear, o.zero.node ? 3 : 2, inputs, TUTTI_COUNT(attrs),
                       attrs);
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "-1"},
    {"block", TUTTI_ATTR_INT, "0"},
    {NULL},
};
static const char *const samples[] = {
    "u8[2,3]{0:256} f32[]{=0.02} u8[]{=128}",
    "i8[4,3]{-128:128} f32[3]{=0.02,0.1,0.01} i8[3]{=0,5,-100}",
    "u8[2,3,2]{0:256} f32[3]{0.01:0.1} | axis=1",
    "i8[5,2]{-128:128} f32[3,2]{0.01:0.1} i8[3,2]{0:100} | axis=0 block=2",
    "i32[3]{-1000:1000} f64[1]{=0.02}",
    "i8[4]{-128:128} bf16[]{=0.02} i8[]{=3}",
    NULL,
};

const tutti_op tutti_op_dequantize_linear = {
    .struct_size = sizeof(tutti_op),
    .name = "dequantize_linear",
    .version = 1,
    .doc = "dequantize_linear(q, scale, zero; axis, block): y = (q - zero) * scale",
    .category = "quantized",
    .min_inputs = 2,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = dequantize_linear_infer,
    .cost = tutti__cost_elementwise,
    .split = tutti__split_quantum,
    .reference = dequantize_linear_reference,
    .samples = samples,
};
