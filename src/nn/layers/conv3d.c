/* conv3d.c: y = activation(conv3d(x, kernel) + bias). */
#include "nn/layers/convolution.h"

static tutti_sym conv3d_call(tutti_layer_call *call)
{
    const tutti_conv3d_settings *s = call->settings;
    tutti_type x = tutti_sym_type(call->inputs[0]);
    int64_t groups = s->groups > 0 ? s->groups : 1, channels = x.dims[4];
    if (!tutti__layer_takes(call, 5, TUTTI_VOLUMES) || !tutti__layer_filters(call, s->filters))
        return TUTTI_NO_SYM;
    if (s->filters % groups || (channels > 0 && channels % groups))
        return tutti_layer_fail(call,
                                "%lld filters over %lld channels cannot be cut into %lld groups",
                                (long long)s->filters, (long long)channels, (long long)groups);
    const int64_t *size = s->kernel_size, *strides = s->strides, *dilations = s->dilations;
    tutti_type shape = TUTTI_TYPE(TUTTI_F32, tutti__pair(size, 0, 1), tutti__pair(size, 1, 1),
                                  tutti__pair(size, 2, 1),
                                  channels > 0 ? channels / groups : channels, s->filters);
    tutti_sym kernel =
        tutti_weight(call, "kernel", shape, .initializer = s->kernel_initializer,
                     .regularizer = s->kernel_regularizer, .constraint = s->kernel_constraint,
                     .sharding = "-,-,-,-,channels");
    tutti_sym y =
        tutti_nn_conv3d(call->inputs[0], kernel,
                        .strides = {tutti__pair(strides, 0, 1), tutti__pair(strides, 1, 1),
                                    tutti__pair(strides, 2, 1)},
                        .dilations = {tutti__pair(dilations, 0, 1), tutti__pair(dilations, 1, 1),
                                      tutti__pair(dilations, 2, 1)},
                        .padding = s->padding, .groups = groups);
    return CONVOLUTION_END(call, s, y);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_conv3d_settings, filters),
    TUTTI_INTS_FIELD(tutti_conv3d_settings, kernel_size),
    TUTTI_INTS_FIELD(tutti_conv3d_settings, strides),
    TUTTI_INTS_FIELD(tutti_conv3d_settings, dilations),
    TUTTI_TEXT_FIELD(tutti_conv3d_settings, padding),
    TUTTI_INT_FIELD(tutti_conv3d_settings, groups),
    CONVOLUTION_WEIGHT_FIELDS(tutti_conv3d_settings),
    {0},
};

const tutti_layer_kind tutti_layer_conv3d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "conv3d",
    .doc = "conv3d(filters, size): y = activation(conv3d(x, kernel) + bias)",
    .settings_size = sizeof(tutti_conv3d_settings),
    .fields = fields,
    .call = conv3d_call,
};
