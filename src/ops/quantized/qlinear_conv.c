/* qlinear_conv.c: quantised convolutions, quantised again. */
#include "ops/build.h"
#include "ops/network/window.h"
#include "ops/quantized/quantized.h"

static tutti_status qlinear_conv_infer(tutti_infer *node)
{
    return tutti__int_conv_infer(node, tutti__qlinear_conv_inputs(), node->inputs[7].dtype);
}

static tutti_status qlinear_conv_reference(const tutti_kernel_call *call)
{
    return tutti__int_conv_reference(call, tutti__qlinear_conv_inputs());
}

static void qlinear_conv_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__int_conv_cost(node, tutti__qlinear_conv_inputs(), ret);
}

static int qlinear_conv_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__int_conv_split(node, tutti__qlinear_conv_inputs(), capacity, ret);
}

extern const tutti_op tutti_op_qlinear_conv;
tutti_sym tutti_qlinear_conv_with(tutti_sym x, tutti_sym kernel,
                                  const tutti_qlinear_conv_options *given)
{
    RULE_OPTIONS(tutti_qlinear_conv_options, o, given);
    if (!o.x_scale.node || !o.kernel_scale.node || !o.y_scale.node)
        return tutti__no_scale(x, "qlinear_conv", ".x_scale, .kernel_scale and .y_scale");
    tutti_sym inputs[] = {x,
                          o.x_scale,
                          tutti__zero_or(o.x_zero, x),
                          kernel,
                          o.kernel_scale,
                          tutti__zero_or(o.kernel_zero, kernel),
                          o.y_scale,
                          tutti__zero_or(o.y_zero, x),
                          o.bias};
    tutti_attr all[5];
    tutti__int_conv_attrs(o.strides, o.dilations, o.padding, o.pads, o.groups, all);
    return tutti__nary(&tutti_op_qlinear_conv, o.bias.node ? 9 : 8, inputs, TUTTI_COUNT(all), all);
}

static const tutti_attr_spec attrs[] = {CONVOLUTION_ATTRS, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "u8[2,5,4,2]{0:256} f32[]{=0.02} u8[]{=128} i8[3,2,2,3]{-128:128} f32[3]{0.01:0.1} i8[3]{-5:5} f32[]{=0.3} u8[]{=100}",
    "i8[1,6,5,2]{-128:128} f32[]{=0.02} i8[]{=3} u8[3,3,2,2]{0:256} f32[]{=0.01} u8[]{=99} f32[]{=0.2} i8[]{=7} i32[2]{-1000:1000} | strides=[2,2] padding=same",
    "u8[2,4,5,4]{0:256} f32[1]{=0.1} u8[]{=9} i8[2,2,2,6]{-128:128} f32[6]{0.01:0.1} i8[]{=0} f32[]{=1} u8[]{=128} | groups=2",
    NULL,
};
const tutti_op tutti_op_qlinear_conv = {
    .struct_size = sizeof(tutti_op),
    .name = "qlinear_conv",
    .version = 1,
    .doc =
        "qlinear_conv(x, x_scale, x_zero, kernel, kernel_scale, kernel_zero, y_scale, y_zero, bias): y = round((bias + sum of (x - x_zero) * (kernel - kernel_zero)) * x_scale * kernel_scale / y_scale) + y_zero; attributes as conv2d",
    .category = "quantized",
    .min_inputs = 8,
    .max_inputs = 9,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = qlinear_conv_infer,
    .cost = qlinear_conv_cost,
    .split = qlinear_conv_split,
    .reference = qlinear_conv_reference,
    .samples = samples,
};
