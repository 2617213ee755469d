/* quantize_linear.c: floats as bytes. */
#include "ops/quantized/quantized.h"

static tutti_status quantize_linear_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    tutti_dtype dtype = (tutti_dtype)RULE_INT(node, "dtype");
    if (!tutti_dtype_is_float(x->dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "x is %s, needs floats", tutti_type_text(x, text));
    if (node->input_count > 2) {
        TUTTI_TRY(tutti__need_bytes(node, 2, "the zero"));
        dtype = node->inputs[2].dtype;
    }
    if (!tutti__is_byte(dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "dtype is %s, knows i8 and u8",
                         tutti_dtype_name(dtype));
    TUTTI_TRY(tutti__need_scale(node));
    return tutti__shape_output(node, 0, dtype, x->rank, x->dims);
}

/* In f32, but f64 in its own precision. */
static float divided(const tutti_view *x, const tutti_view *scale, int64_t i, int64_t k)
{
    double value = tutti_view_get(x, i), by = tutti_view_get(scale, k);
    return x->dtype == TUTTI_F64 ? (float)rint(value / by) : (float)value / (float)by;
}

static tutti_status quantize_linear_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *scale = &call->inputs[1], *y = &call->outputs[0];
    tutti_quantum q = tutti__quantum(call);
    int64_t count = tutti_view_count(x);
    for (int64_t i = 0; i < count; i++) {
        int64_t k = tutti__quantum_at(&q, i);
        int32_t zero = call->input_count > 2 ? tutti__byte_at(&call->inputs[2], k) : 0;
        tutti_view_set_int(y, i, tutti__saturate(divided(x, scale, i, k), zero, y->dtype));
    }
    return TUTTI_OK;
}

extern const tutti_op tutti_op_quantize_linear;
tutti_sym tutti_quantize_linear_with(tutti_sym x, tutti_sym scale,
                                     const tutti_quantize_linear_options *options)
{
    RULE_OPTIONS(tutti_quantize_linear_options, o, options);
    tutti_sym inputs[] = {x, scale, o.zero};
    tutti_attr attrs[] = {TUTTI_INT("axis", o.axis), TUTTI_INT("block", o.block),
                          TUTTI_INT("dtype", o.dtype ? o.dtype : TUTTI_U8)};
    return tutti__nary(&tutti_op_quantize_linear, o.zero.node ? 3 : 2, inputs, TUTTI_COUNT(attrs),
                       attrs);
}

static const tutti_attr_spec attrs[] = {
    {"axis", TUTTI_ATTR_INT, "-1"},
    {"block", TUTTI_ATTR_INT, "0"},
    {"dtype", TUTTI_ATTR_INT, "u8"}, /* without a zero */
    {NULL},
};
static const char *const samples[] = {
    "f32[2,3]{-3:3} f32[]{=0.02} u8[]{=128}",
    "f32[4,3]{-3:3} f32[3]{=0.02,0.1,0.01} i8[3]{=0,5,-100}",
    "f32[2,3,2]{-3:3} f32[3]{0.01:0.1} | axis=1 dtype=i8",
    "f32[5,2]{-3:3} f32[3,2]{0.01:0.1} u8[3,2]{0:200} | axis=0 block=2",
    "f64[3]{-3:3} f64[1]{=0.02}",
    "bf16[4]{-3:3} bf16[]{=0.02} i8[]{=3}",
    "f32[0,3] f32[]{=1}",
    NULL,
};

const tutti_op tutti_op_quantize_linear = {
    .struct_size = sizeof(tutti_op),
    .name = "quantize_linear",
    .version = 1,
    .doc =
        "quantize_linear(x, scale, zero; axis, block, dtype): y = round(x / scale) + zero, halves to even, within the range of y's type",
    .category = "quantized",
    .min_inputs = 2,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = quantize_linear_infer,
    .cost = tutti__cost_elementwise,
    .split = tutti__split_quantum,
    .reference = quantize_linear_reference,
    .samples = samples,
};
