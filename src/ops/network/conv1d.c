/* conv1d.c: convolutions that are conv2d in another shape: along time, and each channel by itself.
 */
#include "ops/composite.h"
#include "ops/network/network.h"

/* Causal padding: as much before the first step as the kernel reaches back. */
static tutti_status causal(tutti_sym kernel, tutti_conv1d_options *options)
{
    char text[TUTTI_TYPE_TEXT];
    tutti_type type = tutti_sym_type(kernel);
    if (type.rank != 3 || type.dims[0] < 1 || type.dims[0] > INT32_MAX ||
        options->dilations > INT32_MAX)
        return tutti_fail(TUTTI_INVALID,
                          "conv1d: padding \"causal\" needs a kernel [time, channels, filters] of "
                          "known length, this one is %s",
                          tutti_type_text(&type, text));
    options->padding = "explicit";
    options->pads[0] = (type.dims[0] - 1) * options->dilations;
    options->pads[1] = 0;
    return TUTTI_OK;
}

static tutti_status check_ranks(tutti_sym x, tutti_sym kernel)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    tutti_type of_x = tutti_sym_type(x), of_kernel = tutti_sym_type(kernel);
    if (of_x.rank == 3 && of_kernel.rank == 3)
        return TUTTI_OK;
    return tutti_fail(TUTTI_INVALID,
                      "conv1d: x is %s, kernel is %s; needs x [batch,time,channels] and kernel "
                      "[time,channels/groups,filters]",
                      tutti_type_text(&of_x, a), tutti_type_text(&of_kernel, b));
}

/* [batch, time, channels] as an image of height 1. */
tutti_sym tutti_nn_conv1d_with(tutti_sym x, tutti_sym kernel, const tutti_conv1d_options *given)
{
    TAKE_OPTIONS(tutti_conv1d_options, options, given);
    if (!tutti__usable("conv1d", x) || !tutti__usable("conv1d", kernel))
        return TUTTI_POISON;
    options.strides += options.strides == 0;
    options.dilations += options.dilations == 0;
    tutti_status status = check_ranks(x, kernel);
    if (status == TUTTI_OK && options.padding != NULL && strcmp(options.padding, "causal") == 0)
        status = causal(kernel, &options);
    if (status != TUTTI_OK)
        return tutti__poison(tutti_sym_graph(x), status, "%s", tutti_error_message());
    tutti_sym y = tutti_nn_conv2d(
        tutti_expand_dims(x, 1), tutti_expand_dims(kernel, 0), .strides = {1, options.strides},
        .dilations = {1, options.dilations}, .padding = options.padding,
        .pads = {0, 0, options.pads[0], options.pads[1]}, .groups = options.groups);
    return tutti_squeeze(y, 1);
}

/* Kernel [kh, kw, channels, multiplier] is, row-major, conv2d's [kh, kw, 1, channels * multiplier]
 * in `channels` groups. */
tutti_sym tutti_nn_depthwise_conv2d_with(tutti_sym x, tutti_sym kernel,
                                         const tutti_conv2d_options *given)
{
    char text[TUTTI_TYPE_TEXT];
    TAKE_OPTIONS(tutti_conv2d_options, options, given);
    if (!tutti__usable("depthwise_conv2d", x) || !tutti__usable("depthwise_conv2d", kernel))
        return TUTTI_POISON;
    tutti_type type = tutti_sym_type(kernel);
    const int64_t *dims = type.dims;
    if (type.rank != 4 || !tutti_type_is_static(&type) || tutti_type_count(&type) < 1)
        return tutti__poison(tutti_sym_graph(x), TUTTI_INVALID,
                             "depthwise_conv2d: kernel is %s, needs known dimensions "
                             "[height,width,channels,multiplier] of at least 1",
                             tutti_type_text(&type, text));
    options.groups = dims[2];
    options.struct_size = sizeof options;
    return tutti_nn_conv2d_with(x, tutti_reshape(kernel, dims[0], dims[1], 1, dims[2] * dims[3]),
                                &options);
}

const tutti_composite tutti_composite_conv1d = {
    .name = "conv1d",
    .category = "network",
    .doc =
        "conv1d(x, kernel): y[n,t,f] = sum over i,c of x[n, t*stride - pad + i*dilation, c] * kernel[i,c,f]",
    .made_of = "conv2d over [batch, 1, time, channels]",
};

const tutti_composite tutti_composite_depthwise_conv2d = {
    .name = "depthwise_conv2d",
    .category = "network",
    .doc =
        "depthwise_conv2d(x, kernel): each channel by itself; channel c gives outputs c * multiplier and on",
    .made_of = "conv2d with as many groups as channels",
};
