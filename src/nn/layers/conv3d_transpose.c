/* conv3d_transpose.c: y = activation(conv3d_transpose(x, kernel) + bias). */
#include "nn/layers/convolution.h"

static tutti_sym conv3d_transpose_call(tutti_layer_call *call)
{
    const tutti_conv3d_transpose_settings *s = call->settings;
    tutti_type x = tutti_sym_type(call->inputs[0]);
    tutti_transposed_axis axes[3];
    int64_t size[3], more[3];
    if (!tutti__layer_takes(call, 5, TUTTI_VOLUMES) || !tutti__layer_filters(call, s->filters))
        return TUTTI_NO_SYM;
    for (int i = 0; i < 3; i++) {
        axes[i] = (tutti_transposed_axis){x.dims[i + 1],
                                          tutti__pair(s->kernel_size, i, 1),
                                          tutti__pair(s->strides, i, 1),
                                          tutti__pair(s->dilations, i, 1),
                                          tutti__pair(s->output_padding, i, 0),
                                          strcmp(tutti__text_or(s->padding, "valid"), "same") == 0};
        if (!tutti__transposed_axis(call, &axes[i], &size[i], &more[i]))
            return TUTTI_NO_SYM;
    }
    tutti_type shape = TUTTI_TYPE(TUTTI_F32, axes[0].kernel, axes[1].kernel, axes[2].kernel,
                                  s->filters, x.dims[4]);
    tutti_sym kernel =
        tutti_weight(call, "kernel", shape, .initializer = s->kernel_initializer,
                     .regularizer = s->kernel_regularizer, .constraint = s->kernel_constraint,
                     .sharding = "-,-,-,channels,-");
    tutti_sym y = tutti_nn_conv3d_transpose(
        call->inputs[0], kernel, .strides = {axes[0].stride, axes[1].stride, axes[2].stride},
        .dilations = {axes[0].dilation, axes[1].dilation, axes[2].dilation}, .padding = s->padding,
        .size = {size[0], size[1], size[2]}, .output_padding = {more[0], more[1], more[2]});
    return CONVOLUTION_END(call, s, y);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_conv3d_transpose_settings, filters),
    TUTTI_INTS_FIELD(tutti_conv3d_transpose_settings, kernel_size),
    TUTTI_INTS_FIELD(tutti_conv3d_transpose_settings, strides),
    TUTTI_INTS_FIELD(tutti_conv3d_transpose_settings, dilations),
    TUTTI_INTS_FIELD(tutti_conv3d_transpose_settings, output_padding),
    TUTTI_TEXT_FIELD(tutti_conv3d_transpose_settings, padding),
    CONVOLUTION_WEIGHT_FIELDS(tutti_conv3d_transpose_settings),
    {0},
};

const tutti_layer_kind tutti_layer_conv3d_transpose = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "conv3d_transpose",
    .doc = "conv3d_transpose(filters, size): y = activation(conv3d_transpose(x, kernel) + bias)",
    .settings_size = sizeof(tutti_conv3d_transpose_settings),
    .fields = fields,
    .call = conv3d_transpose_call,
};
