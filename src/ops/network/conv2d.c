/* conv2d.c: two-dimensional convolution (cross-correlation, as networks use it). */
#include "ops/network/window.h"

extern const tutti_op tutti_op_conv2d;

static tutti_status conv2d_infer(tutti_infer *node)
{
    return tutti__conv_infer(node, 2);
}

tutti_sym tutti_nn_conv2d_with(tutti_sym x, tutti_sym kernel, const tutti_conv2d_options *given)
{
    TAKE_OPTIONS(tutti_conv2d_options, options, given);
    int64_t any_pad = 0;
    for (int axis = 0; axis < 2; axis++) {
        options.strides[axis] += options.strides[axis] == 0;
        options.dilations[axis] += options.dilations[axis] == 0;
        any_pad |= options.pads[2 * axis] | options.pads[2 * axis + 1];
    }
    if (options.padding == NULL)
        options.padding = any_pad ? "explicit" : "valid";
    tutti_sym inputs[] = {x, kernel};
    return TUTTI_NARY(&tutti_op_conv2d, inputs, TUTTI_INTS("strides", 2, options.strides),
                      TUTTI_INTS("dilations", 2, options.dilations),
                      TUTTI_STR("padding", options.padding), TUTTI_INTS("pads", 4, options.pads),
                      TUTTI_INT("groups", options.groups == 0 ? 1 : options.groups));
}

static const tutti_attr_spec attrs[] = {
    CONVOLUTION_ATTRS, PRODUCTS_ATTR, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,5,4,2] f32[3,2,2,3]",
    "f32[1,6,5,2] f32[3,3,2,2] | strides=[2,2] padding=same",
    "f32[1,7,6,1] f32[2,3,1,2] | dilations=[2,2]",
    "f32[2,4,5,4] f32[2,2,2,6] | groups=2 strides=[1,2]",
    "f32[1,4,4,3] f32[3,3,1,3] | groups=3 padding=same",
    "f32[1,3,4,2] f32[3,2,2,2] | padding=explicit pads=[2,1,0,3] strides=[2,1]",
    "f32[2,3,3,3] f32[1,1,3,4]",
    "f64[1,5,5,1] f64[3,3,1,1] | padding=same strides=[3,2] dilations=[1,2]",
    NULL,
};

const tutti_op tutti_op_conv2d = {
    .struct_size = sizeof(tutti_op),
    .name = "conv2d",
    .version = 1,
    .doc = "conv2d(x, kernel): y[n,h,w,f] = sum over i,j,c of "
           "x[n, h*stride - pad + i*dilation, w*stride - pad + j*dilation, c] * kernel[i,j,c,f]; "
           "channels and filters in `groups` parts that do not mix",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .infer = conv2d_infer,
    .gradient = tutti__conv_gradient,
    .cost = tutti__conv_cost,
    .split = tutti__conv_split,
    .reference = tutti__conv_reference,
    .samples = samples,
};
