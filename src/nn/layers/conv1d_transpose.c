/* conv1d_transpose.c: y = activation(conv1d_transpose(x, kernel) + bias). */
#include "nn/layers/convolution.h"

static tutti_sym conv1d_transpose_call(tutti_layer_call *call)
{
    const tutti_conv1d_transpose_settings *s = call->settings;
    tutti_type x = tutti_sym_type(call->inputs[0]);
    tutti_transposed_axis axis = {x.dims[1],
                                  s->kernel_size > 0 ? s->kernel_size : 1,
                                  s->strides > 0 ? s->strides : 1,
                                  s->dilations > 0 ? s->dilations : 1,
                                  s->output_padding,
                                  strcmp(tutti__text_or(s->padding, "valid"), "same") == 0};
    int64_t size, more;
    if (!tutti__layer_takes(call, 3, "sequences [batch, time, channels]") ||
        !tutti__layer_filters(call, s->filters) ||
        !tutti__transposed_axis(call, &axis, &size, &more))
        return TUTTI_NO_SYM;
    tutti_sym kernel =
        tutti_weight(call, "kernel", TUTTI_TYPE(TUTTI_F32, axis.kernel, s->filters, x.dims[2]),
                     .initializer = s->kernel_initializer, .regularizer = s->kernel_regularizer,
                     .constraint = s->kernel_constraint, .sharding = "-,channels,-");
    tutti_sym y = tutti_nn_conv1d_transpose(call->inputs[0], kernel, .strides = axis.stride,
                                            .dilations = axis.dilation, .padding = s->padding,
                                            .size = size, .output_padding = more);
    return CONVOLUTION_END(call, s, y);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_conv1d_transpose_settings, filters),
    TUTTI_INT_FIELD(tutti_conv1d_transpose_settings, kernel_size),
    TUTTI_INT_FIELD(tutti_conv1d_transpose_settings, strides),
    TUTTI_INT_FIELD(tutti_conv1d_transpose_settings, dilations),
    TUTTI_INT_FIELD(tutti_conv1d_transpose_settings, output_padding),
    TUTTI_TEXT_FIELD(tutti_conv1d_transpose_settings, padding),
    CONVOLUTION_WEIGHT_FIELDS(tutti_conv1d_transpose_settings),
    {0},
};

const tutti_layer_kind tutti_layer_conv1d_transpose = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "conv1d_transpose",
    .doc = "conv1d_transpose(filters, size): y = activation(conv1d_transpose(x, kernel) + bias)",
    .settings_size = sizeof(tutti_conv1d_transpose_settings),
    .fields = fields,
    .call = conv1d_transpose_call,
};
