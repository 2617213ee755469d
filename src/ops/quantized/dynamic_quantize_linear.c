/* dynamic_quantize_linear.c: floats as u8 by their own smallest and largest. */
#include "ops/quantized/quantized.h"

static tutti_status dynamic_quantize_linear_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *x = &node->inputs[0];
    if (!tutti_dtype_is_float(x->dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "x is %s, needs floats", tutti_type_text(x, text));
    TUTTI_TRY(tutti__shape_output(node, 0, TUTTI_U8, x->rank, x->dims));
    TUTTI_TRY(tutti__shape_output(node, 1, TUTTI_F32, 0, NULL));
    return tutti__shape_output(node, 2, TUTTI_U8, 0, NULL);
}

/* low = min(0, min x), high = max(0, max x), scale = (high - low) / 255, zero = round(-low /
 * scale); of zeros only the scale is 1. */
static tutti_status dynamic_quantize_linear_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    int64_t count = tutti_view_count(x);
    float low = 0, high = 0;
    for (int64_t i = 0; i < count; i++) {
        float value = (float)tutti_view_get(x, i);
        low = value < low ? value : low;
        high = value > high ? value : high;
    }
    float scale = high > low ? (high - low) / 255 : 1;
    int32_t zero = tutti__saturate(-low / scale, 0, TUTTI_U8);
    for (int64_t i = 0; i < count; i++)
        tutti_view_set_int(&call->outputs[0], i,
                           tutti__saturate((float)tutti_view_get(x, i) / scale, zero, TUTTI_U8));
    tutti_view_set(&call->outputs[1], 0, scale);
    tutti_view_set_int(&call->outputs[2], 0, zero);
    return TUTTI_OK;
}

extern const tutti_op tutti_op_dynamic_quantize_linear;
tutti_sym(tutti_dynamic_quantize_linear)(tutti_sym x)
{
    return tutti__unary(&tutti_op_dynamic_quantize_linear, x);
}

static const char *const samples[] = {
    "f32[2,3]{-3:3}", "f32[5]{1:2}", "f64[3]{=-4,-2,-1}", "f32[2]{=0,0}", "f32[0]", "bf16[4]", NULL,
};

const tutti_op tutti_op_dynamic_quantize_linear = {
    .struct_size = sizeof(tutti_op),
    .name = "dynamic_quantize_linear",
    .version = 1,
    .doc =
        "dynamic_quantize_linear(x): (y, scale, zero): y = round(x / scale) + zero, u8, with scale and zero such that 0 and all of x fit",
    .category = "quantized",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 3,
    .flags = TUTTI_OP_NO_GRADIENT,
    .infer = dynamic_quantize_linear_infer,
    .cost = tutti__cost_elementwise,
    .reference = dynamic_quantize_linear_reference,
    .samples = samples,
};
