/* separable_conv1d.c: a convolution along time of each channel by itself, then one of all channels
 * of a step. */
#include "nn/layers/convolution.h"

static tutti_sym separable_conv1d_call(tutti_layer_call *call)
{
    const tutti_separable_conv1d_settings *s = call->settings;
    tutti_type x = tutti_sym_type(call->inputs[0]);
    int64_t multiplier = s->depth_multiplier > 0 ? s->depth_multiplier : 1;
    if (!tutti__layer_takes(call, 3, "sequences [batch, time, channels]") ||
        !tutti__layer_knows(call, 2) || !tutti__layer_filters(call, s->filters))
        return TUTTI_NO_SYM;
    int64_t channels = x.dims[2], size = s->kernel_size > 0 ? s->kernel_size : 1;
    tutti_type window = TUTTI_TYPE(TUTTI_F32, size, channels, multiplier);
    tutti_type step = TUTTI_TYPE(TUTTI_F32, 1, channels * multiplier, s->filters);
    tutti_sym depthwise = SEPARABLE_KERNEL(call, s, depthwise, window, "-,channels,-");
    tutti_sym pointwise = SEPARABLE_KERNEL(call, s, pointwise, step, "-,-,channels");
    tutti_sym image = tutti_expand_dims(call->inputs[0], 1);
    tutti_sym apart = tutti_nn_depthwise_conv2d(
        image, tutti_expand_dims(depthwise, 0), .strides = {1, s->strides > 0 ? s->strides : 1},
        .dilations = {1, s->dilations > 0 ? s->dilations : 1}, .padding = s->padding);
    tutti_sym y = tutti_nn_conv1d(tutti_squeeze(apart, 1), pointwise);
    return CONVOLUTION_END(call, s, y);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_separable_conv1d_settings, filters),
    TUTTI_INT_FIELD(tutti_separable_conv1d_settings, kernel_size),
    TUTTI_INT_FIELD(tutti_separable_conv1d_settings, strides),
    TUTTI_INT_FIELD(tutti_separable_conv1d_settings, dilations),
    TUTTI_INT_FIELD(tutti_separable_conv1d_settings, depth_multiplier),
    TUTTI_TEXT_FIELD(tutti_separable_conv1d_settings, padding),
    SEPARABLE_WEIGHT_FIELDS(tutti_separable_conv1d_settings),
    {0},
};

const tutti_layer_kind tutti_layer_separable_conv1d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "separable_conv1d",
    .doc = "separable_conv1d(filters, size): y = activation(conv1d(depthwise_conv1d(x, "
           "depthwise_kernel), pointwise_kernel) + bias)",
    .settings_size = sizeof(tutti_separable_conv1d_settings),
    .fields = fields,
    .call = separable_conv1d_call,
};
