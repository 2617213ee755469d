/* separable_conv2d.c: a convolution of each channel by itself, then one of all channels of a pixel.
 */
#include "nn/layers/convolution.h"

static tutti_sym separable_conv2d_call(tutti_layer_call *call)
{
    const tutti_separable_conv2d_settings *s = call->settings;
    tutti_type x = tutti_sym_type(call->inputs[0]);
    int64_t multiplier = s->depth_multiplier > 0 ? s->depth_multiplier : 1;
    if (!tutti__layer_takes(call, 4, TUTTI_IMAGES) || !tutti__layer_knows(call, 3) ||
        !tutti__layer_filters(call, s->filters))
        return TUTTI_NO_SYM;
    tutti_type window = TUTTI_TYPE(TUTTI_F32, tutti__pair(s->kernel_size, 0, 1),
                                   tutti__pair(s->kernel_size, 1, 1), x.dims[3], multiplier);
    tutti_type pixel = TUTTI_TYPE(TUTTI_F32, 1, 1, x.dims[3] * multiplier, s->filters);
    tutti_sym depthwise = SEPARABLE_KERNEL(call, s, depthwise, window, "-,-,channels,-");
    tutti_sym pointwise = SEPARABLE_KERNEL(call, s, pointwise, pixel, "-,-,-,channels");
    tutti_sym channels = tutti_nn_depthwise_conv2d(
        call->inputs[0], depthwise,
        .strides = {tutti__pair(s->strides, 0, 1), tutti__pair(s->strides, 1, 1)},
        .dilations = {tutti__pair(s->dilations, 0, 1), tutti__pair(s->dilations, 1, 1)},
        .padding = s->padding);
    tutti_sym y = tutti_nn_conv2d(channels, pointwise);
    return CONVOLUTION_END(call, s, y);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_separable_conv2d_settings, filters),
    TUTTI_INTS_FIELD(tutti_separable_conv2d_settings, kernel_size),
    TUTTI_INTS_FIELD(tutti_separable_conv2d_settings, strides),
    TUTTI_INTS_FIELD(tutti_separable_conv2d_settings, dilations),
    TUTTI_INT_FIELD(tutti_separable_conv2d_settings, depth_multiplier),
    TUTTI_TEXT_FIELD(tutti_separable_conv2d_settings, padding),
    SEPARABLE_WEIGHT_FIELDS(tutti_separable_conv2d_settings),
    {0},
};

const tutti_layer_kind tutti_layer_separable_conv2d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "separable_conv2d",
    .doc = "separable_conv2d(filters, size): y = activation(conv2d(depthwise_conv2d(x, "
           "depthwise_kernel), pointwise_kernel) + bias)",
    .settings_size = sizeof(tutti_separable_conv2d_settings),
    .fields = fields,
    .call = separable_conv2d_call,
};
