/* conv2d.c: y = activation(conv2d(x, kernel) + bias). */
#include "nn/layers/common.h"

static tutti_sym conv2d_call(tutti_layer_call *call)
{
    const tutti_conv2d_settings *s = call->settings;
    tutti_type x = tutti_sym_type(call->inputs[0]);
    int64_t groups = s->groups > 0 ? s->groups : 1;
    if (x.rank != 4 || !tutti_dtype_is_float(x.dtype)) {
        char text[TUTTI_TYPE_TEXT];
        return tutti_layer_fail(call,
                                "takes images [batch, height, width, channels] of floats, the "
                                "input is %s",
                                tutti_type_text(&x, text));
    }
    if (s->filters < 1 || s->filters % groups || (x.dims[3] > 0 && x.dims[3] % groups))
        return tutti_layer_fail(call,
                                "%lld filters over %lld channels cannot be cut into %lld groups",
                                (long long)s->filters, (long long)x.dims[3], (long long)groups);
    tutti_type shape =
        TUTTI_TYPE(TUTTI_F32, tutti__pair(s->kernel_size, 0, 1), tutti__pair(s->kernel_size, 1, 1),
                   x.dims[3] > 0 ? x.dims[3] / groups : x.dims[3], s->filters);
    tutti_sym kernel =
        tutti_weight(call, "kernel", shape, .initializer = s->kernel_initializer,
                     .regularizer = s->kernel_regularizer, .constraint = s->kernel_constraint,
                     .sharding = "-,-,-,channels");
    tutti_sym y = tutti_nn_conv2d(
        call->inputs[0], kernel,
        .strides = {tutti__pair(s->strides, 0, 1), tutti__pair(s->strides, 1, 1)},
        .dilations = {tutti__pair(s->dilations, 0, 1), tutti__pair(s->dilations, 1, 1)},
        .padding = s->padding, .groups = groups);
    if (!s->no_bias)
        y = tutti_add(y, tutti_weight(call, "bias", TUTTI_TYPE(TUTTI_F32, s->filters),
                                      .initializer = tutti__text_or(s->bias_initializer, "zeros"),
                                      .regularizer = s->bias_regularizer,
                                      .constraint = s->bias_constraint, .sharding = "channels"));
    return tutti_nn_activation(y, s->activation);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_conv2d_settings, filters),
    TUTTI_INTS_FIELD(tutti_conv2d_settings, kernel_size),
    TUTTI_INTS_FIELD(tutti_conv2d_settings, strides),
    TUTTI_INTS_FIELD(tutti_conv2d_settings, dilations),
    TUTTI_TEXT_FIELD(tutti_conv2d_settings, padding),
    TUTTI_INT_FIELD(tutti_conv2d_settings, groups),
    TUTTI_TEXT_FIELD(tutti_conv2d_settings, activation),
    TUTTI_FLAG_FIELD(tutti_conv2d_settings, no_bias),
    TUTTI_TEXT_FIELD(tutti_conv2d_settings, kernel_initializer),
    TUTTI_TEXT_FIELD(tutti_conv2d_settings, bias_initializer),
    TUTTI_TEXT_FIELD(tutti_conv2d_settings, kernel_regularizer),
    TUTTI_TEXT_FIELD(tutti_conv2d_settings, bias_regularizer),
    TUTTI_TEXT_FIELD(tutti_conv2d_settings, kernel_constraint),
    TUTTI_TEXT_FIELD(tutti_conv2d_settings, bias_constraint),
    {0},
};

const tutti_layer_kind tutti_layer_conv2d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "conv2d",
    .doc = "conv2d(filters, size): y = activation(conv2d(x, kernel) + bias)",
    .settings_size = sizeof(tutti_conv2d_settings),
    .fields = fields,
    .call = conv2d_call,
};
