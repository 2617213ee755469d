/* depthwise_conv2d.c: a convolution of each channel by itself. */
#include "nn/layers/common.h"

static tutti_sym depthwise_conv2d_call(tutti_layer_call *call)
{
    const tutti_depthwise_conv2d_settings *s = call->settings;
    tutti_type x = tutti_sym_type(call->inputs[0]);
    int64_t multiplier = s->depth_multiplier > 0 ? s->depth_multiplier : 1;
    if (!tutti__layer_takes(call, 4, TUTTI_IMAGES) || !tutti__layer_knows(call, 3))
        return TUTTI_NO_SYM;
    tutti_type shape = TUTTI_TYPE(TUTTI_F32, tutti__pair(s->kernel_size, 0, 1),
                                  tutti__pair(s->kernel_size, 1, 1), x.dims[3], multiplier);
    tutti_sym kernel =
        tutti_weight(call, "kernel", shape, .initializer = s->depthwise_initializer,
                     .regularizer = s->depthwise_regularizer, .constraint = s->depthwise_constraint,
                     .sharding = "-,-,channels,-");
    tutti_sym y = tutti_nn_depthwise_conv2d(
        call->inputs[0], kernel,
        .strides = {tutti__pair(s->strides, 0, 1), tutti__pair(s->strides, 1, 1)},
        .dilations = {tutti__pair(s->dilations, 0, 1), tutti__pair(s->dilations, 1, 1)},
        .padding = s->padding);
    if (!s->no_bias)
        y = tutti_add(y, tutti_weight(call, "bias", TUTTI_TYPE(TUTTI_F32, x.dims[3] * multiplier),
                                      .initializer = tutti__text_or(s->bias_initializer, "zeros"),
                                      .regularizer = s->bias_regularizer,
                                      .constraint = s->bias_constraint, .sharding = "channels"));
    return tutti_nn_activation(y, s->activation);
}

static const tutti_field fields[] = {
    TUTTI_INTS_FIELD(tutti_depthwise_conv2d_settings, kernel_size),
    TUTTI_INTS_FIELD(tutti_depthwise_conv2d_settings, strides),
    TUTTI_INTS_FIELD(tutti_depthwise_conv2d_settings, dilations),
    TUTTI_INT_FIELD(tutti_depthwise_conv2d_settings, depth_multiplier),
    TUTTI_TEXT_FIELD(tutti_depthwise_conv2d_settings, padding),
    TUTTI_TEXT_FIELD(tutti_depthwise_conv2d_settings, activation),
    TUTTI_FLAG_FIELD(tutti_depthwise_conv2d_settings, no_bias),
    TUTTI_TEXT_FIELD(tutti_depthwise_conv2d_settings, depthwise_initializer),
    TUTTI_TEXT_FIELD(tutti_depthwise_conv2d_settings, bias_initializer),
    TUTTI_TEXT_FIELD(tutti_depthwise_conv2d_settings, depthwise_regularizer),
    TUTTI_TEXT_FIELD(tutti_depthwise_conv2d_settings, bias_regularizer),
    TUTTI_TEXT_FIELD(tutti_depthwise_conv2d_settings, depthwise_constraint),
    TUTTI_TEXT_FIELD(tutti_depthwise_conv2d_settings, bias_constraint),
    {0},
};

const tutti_layer_kind tutti_layer_depthwise_conv2d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "depthwise_conv2d",
    .doc = "depthwise_conv2d(size): y[c m + j] = activation(conv2d(x[c], kernel[c, j]) + bias)",
    .settings_size = sizeof(tutti_depthwise_conv2d_settings),
    .fields = fields,
    .call = depthwise_conv2d_call,
};
