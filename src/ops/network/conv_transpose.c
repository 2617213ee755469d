/* conv_transpose.c: transposed convolution along time, over images and over volumes: the gradient
 * of a convolution's input, made with its operator. */
#include "ops/composite.h"
#include "ops/network/window.h"

typedef struct transposing {
    int64_t strides[TUTTI_WINDOW_AXES], dilations[TUTTI_WINDOW_AXES];
    int64_t pads[2 * TUTTI_WINDOW_AXES], size[TUTTI_WINDOW_AXES];
    const char *padding;
    int64_t groups;
} transposing;

/* The numbers of one axis; `more` is the output padding. Zero means the default. */
static void set_axis(transposing *t, int axis, const int64_t numbers[4], const int64_t pads[2])
{
    int64_t stride = numbers[0], dilation = numbers[1], more = numbers[2], size = numbers[3];
    t->strides[axis] = stride == 0 ? 1 : stride;
    t->dilations[axis] = dilation == 0 ? 1 : dilation;
    t->pads[2 * axis] = pads[0];
    t->pads[2 * axis + 1] = pads[1];
    t->size[axis] = size > 0 ? size : -more;
    if (t->padding == NULL && (pads[0] | pads[1]) != 0)
        t->padding = "explicit";
}

static tutti_sym transpose(const char *op, int axes, tutti_sym x, tutti_sym kernel,
                           const transposing *t)
{
    tutti_sym inputs[] = {kernel, x};
    tutti_attr attrs[] = {
        TUTTI_INTS("strides", axes, t->strides),
        TUTTI_INTS("dilations", axes, t->dilations),
        TUTTI_STR("padding", t->padding == NULL ? "valid" : t->padding),
        TUTTI_INTS("pads", 2 * axes, t->pads),
        TUTTI_INT("groups", t->groups == 0 ? 1 : t->groups),
        TUTTI_INTS("size", axes, t->size),
    };
    if (!tutti_sym_ok(x) || !tutti_sym_ok(kernel))
        return TUTTI_POISON;
    return tutti_apply_op(tutti_sym_graph(x), op, 2, inputs, (int)TUTTI_COUNT(attrs), attrs);
}

tutti_sym tutti_nn_conv2d_transpose_with(tutti_sym x, tutti_sym kernel,
                                         const tutti_conv2d_transpose_options *given)
{
    TAKE_OPTIONS(tutti_conv2d_transpose_options, o, given);
    transposing t = {.padding = o.padding, .groups = o.groups};
    for (int axis = 0; axis < 2; axis++)
        set_axis(
            &t, axis,
            (int64_t[]){o.strides[axis], o.dilations[axis], o.output_padding[axis], o.size[axis]},
            o.pads + 2 * axis);
    return transpose("conv2d_backward_input", 2, x, kernel, &t);
}

tutti_sym tutti_nn_conv3d_transpose_with(tutti_sym x, tutti_sym kernel,
                                         const tutti_conv3d_transpose_options *given)
{
    TAKE_OPTIONS(tutti_conv3d_transpose_options, o, given);
    transposing t = {.padding = o.padding, .groups = o.groups};
    for (int axis = 0; axis < 3; axis++)
        set_axis(
            &t, axis,
            (int64_t[]){o.strides[axis], o.dilations[axis], o.output_padding[axis], o.size[axis]},
            o.pads + 2 * axis);
    return transpose("conv3d_backward_input", 3, x, kernel, &t);
}

/* [batch, time, channels] as an image of height 1. */
tutti_sym tutti_nn_conv1d_transpose_with(tutti_sym x, tutti_sym kernel,
                                         const tutti_conv1d_transpose_options *given)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    TAKE_OPTIONS(tutti_conv1d_transpose_options, o, given);
    if (!tutti__usable("conv1d_transpose", x) || !tutti__usable("conv1d_transpose", kernel))
        return TUTTI_POISON;
    tutti_type of_x = tutti_sym_type(x), of_kernel = tutti_sym_type(kernel);
    if (of_x.rank != 3 || of_kernel.rank != 3)
        return tutti__poison(
            tutti_sym_graph(x), TUTTI_INVALID,
            "conv1d_transpose: x is %s, kernel is %s; needs x [batch,time,channels] and kernel "
            "[time,filters/groups,channels]",
            tutti_type_text(&of_x, a), tutti_type_text(&of_kernel, b));
    transposing t = {.padding = o.padding, .groups = o.groups};
    set_axis(&t, 0, (int64_t[]){1, 1, 0, 1}, (int64_t[]){0, 0});
    set_axis(&t, 1, (int64_t[]){o.strides, o.dilations, o.output_padding, o.size}, o.pads);
    tutti_sym image = tutti_expand_dims(x, 1), kernel2d = tutti_expand_dims(kernel, 0);
    return tutti_squeeze(transpose("conv2d_backward_input", 2, image, kernel2d, &t), 1);
}

const tutti_composite tutti_composite_conv1d_transpose = {
    .name = "conv1d_transpose",
    .category = "network",
    .doc =
        "conv1d_transpose(x, kernel): y[n, t*stride - pad + i*dilation, f] += x[n,t,c] * kernel[i,f,c]",
    .made_of = "conv2d_backward_input over [batch, 1, time, channels]",
};

const tutti_composite tutti_composite_conv2d_transpose = {
    .name = "conv2d_transpose",
    .category = "network",
    .doc =
        "conv2d_transpose(x, kernel): y[n, h*stride - pad + i*dilation, w*… + j*…, f] += x[n,h,w,c] * kernel[i,j,f,c]",
    .made_of = "conv2d_backward_input",
};

const tutti_composite tutti_composite_conv3d_transpose = {
    .name = "conv3d_transpose",
    .category = "network",
    .doc =
        "conv3d_transpose(x, kernel): y[n, d*stride - pad + l*dilation, h*… + i*…, w*… + j*…, f] += x[n,d,h,w,c] * kernel[l,i,j,f,c]",
    .made_of = "conv3d_backward_input",
};
