/* conv_integer.c: convolutions of bytes, as i32. */
#include "ops/build.h"
#include "ops/network/window.h"
#include "ops/quantized/quantized.h"

static tutti_status conv_integer_infer(tutti_infer *node)
{
    return tutti__int_conv_infer(node, tutti__conv_integer_inputs(), TUTTI_I32);
}

static tutti_status conv_integer_reference(const tutti_kernel_call *call)
{
    return tutti__int_conv_reference(call, tutti__conv_integer_inputs());
}

static void conv_integer_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__int_conv_cost(node, tutti__conv_integer_inputs(), ret);
}

static int conv_integer_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__int_conv_split(node, tutti__conv_integer_inputs(), capacity, ret);
}

extern const tutti_op tutti_op_conv_integer;
tutti_sym tutti_conv_integer_with(tutti_sym x, tutti_sym kernel,
                                  const tutti_conv_integer_options *given)
{
    RULE_OPTIONS(tutti_conv_integer_options, o, given);
    tutti_sym inputs[] = {x, kernel, o.x_zero, o.kernel_zero};
    if (o.kernel_zero.node)
        inputs[2] = tutti__zero_or(o.x_zero, x);
    tutti_attr all[5];
    tutti__int_conv_attrs(o.strides, o.dilations, o.padding, o.pads, o.groups, all);
    return tutti__nary(&tutti_op_conv_integer,
                       o.kernel_zero.node ? 4
                       : o.x_zero.node    ? 3
                                          : 2,
                       inputs, TUTTI_COUNT(all), all);
}

static const tutti_attr_spec attrs[] = {CONVOLUTION_ATTRS, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "u8[2,5,4,2]{0:256} i8[3,2,2,3]{-128:128}",
    "u8[1,6,5,2]{0:256} u8[3,3,2,2]{0:256} u8[]{=30} u8[2]{0:256} | strides=[2,2] padding=same",
    "i8[2,4,5,4]{-128:128} i8[2,2,2,6]{-128:128} i8[]{=-7} | groups=2 strides=[1,2]",
    "i8[1,3,4,2]{-128:128} u8[3,2,2,2]{0:256} i8[]{=5} u8[]{=9} i32[2]{-100:100} | padding=explicit pads=[2,1,0,3] strides=[2,1]",
    "u8[1,4,4,3]{0:256} i8[3,3,1,3]{-128:128} u8[]{=4} | groups=3 padding=same dilations=[1,2]",
    NULL,
};
const tutti_op tutti_op_conv_integer = {
    .struct_size = sizeof(tutti_op),
    .name = "conv_integer",
    .version = 1,
    .doc =
        "conv_integer(x, kernel, x_zero, kernel_zero, bias): y[n, h, w, f] = bias[f] + sum over taps and channels of (x - x_zero) * (kernel - kernel_zero), as i32; attributes as conv2d",
    .category = "quantized",
    .min_inputs = 2,
    .max_inputs = 5,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = conv_integer_infer,
    .cost = conv_integer_cost,
    .split = conv_integer_split,
    .reference = conv_integer_reference,
    .samples = samples,
};
