/* conv1d.c: y = activation(conv1d(x, kernel) + bias). */
#include "nn/layers/common.h"

static tutti_sym conv1d_call(tutti_layer_call *call)
{
    const tutti_conv1d_settings *s = call->settings;
    tutti_type x = tutti_sym_type(call->inputs[0]);
    int64_t groups = s->groups > 0 ? s->groups : 1;
    if (!tutti__layer_takes(call, 3, "sequences [batch, time, channels]"))
        return TUTTI_NO_SYM;
    if (s->filters < 1 || s->filters % groups || (x.dims[2] > 0 && x.dims[2] % groups))
        return tutti_layer_fail(call,
                                "%lld filters over %lld channels cannot be cut into %lld groups",
                                (long long)s->filters, (long long)x.dims[2], (long long)groups);
    tutti_type shape = TUTTI_TYPE(TUTTI_F32, s->kernel_size > 0 ? s->kernel_size : 1,
                                  x.dims[2] > 0 ? x.dims[2] / groups : x.dims[2], s->filters);
    tutti_sym kernel = tutti_weight(call, "kernel", shape, .initializer = s->kernel_initializer,
                                    .regularizer = s->kernel_regularizer,
                                    .constraint = s->kernel_constraint, .sharding = "-,-,channels");
    tutti_sym y = tutti_nn_conv1d(
        call->inputs[0], kernel, .strides = s->strides > 0 ? s->strides : 1,
        .dilations = s->dilations > 0 ? s->dilations : 1, .padding = s->padding, .groups = groups);
    if (!s->no_bias)
        y = tutti_add(y, tutti_weight(call, "bias", TUTTI_TYPE(TUTTI_F32, s->filters),
                                      .initializer = tutti__text_or(s->bias_initializer, "zeros"),
                                      .regularizer = s->bias_regularizer,
                                      .constraint = s->bias_constraint, .sharding = "channels"));
    return tutti_nn_activation(y, s->activation);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_conv1d_settings, filters),
    TUTTI_INT_FIELD(tutti_conv1d_settings, kernel_size),
    TUTTI_INT_FIELD(tutti_conv1d_settings, strides),
    TUTTI_INT_FIELD(tutti_conv1d_settings, dilations),
    TUTTI_TEXT_FIELD(tutti_conv1d_settings, padding),
    TUTTI_INT_FIELD(tutti_conv1d_settings, groups),
    TUTTI_TEXT_FIELD(tutti_conv1d_settings, activation),
    TUTTI_FLAG_FIELD(tutti_conv1d_settings, no_bias),
    TUTTI_TEXT_FIELD(tutti_conv1d_settings, kernel_initializer),
    TUTTI_TEXT_FIELD(tutti_conv1d_settings, bias_initializer),
    TUTTI_TEXT_FIELD(tutti_conv1d_settings, kernel_regularizer),
    TUTTI_TEXT_FIELD(tutti_conv1d_settings, bias_regularizer),
    TUTTI_TEXT_FIELD(tutti_conv1d_settings, kernel_constraint),
    TUTTI_TEXT_FIELD(tutti_conv1d_settings, bias_constraint),
    {0},
};

const tutti_layer_kind tutti_layer_conv1d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "conv1d",
    .doc = "conv1d(filters, size): y = activation(conv1d(x, kernel) + bias)",
    .settings_size = sizeof(tutti_conv1d_settings),
    .fields = fields,
    .call = conv1d_call,
};
