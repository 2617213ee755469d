/* conv3d.c: three-dimensional convolution (cross-correlation, as networks use it). */
#include "ops/network/window.h"

extern const tutti_op tutti_op_conv3d;

static tutti_status conv3d_infer(tutti_infer *node)
{
    return tutti__conv_infer(node, 3);
}

tutti_sym tutti_nn_conv3d_with(tutti_sym x, tutti_sym kernel, const tutti_conv3d_options *given)
{
    TAKE_OPTIONS(tutti_conv3d_options, options, given);
    int64_t any_pad = 0;
    for (int axis = 0; axis < 3; axis++) {
        options.strides[axis] += options.strides[axis] == 0;
        options.dilations[axis] += options.dilations[axis] == 0;
        any_pad |= options.pads[2 * axis] | options.pads[2 * axis + 1];
    }
    if (options.padding == NULL)
        options.padding = any_pad ? "explicit" : "valid";
    tutti_sym inputs[] = {x, kernel};
    return TUTTI_NARY(&tutti_op_conv3d, inputs, TUTTI_INTS("strides", 3, options.strides),
                      TUTTI_INTS("dilations", 3, options.dilations),
                      TUTTI_STR("padding", options.padding), TUTTI_INTS("pads", 6, options.pads),
                      TUTTI_INT("groups", options.groups == 0 ? 1 : options.groups));
}

static const tutti_attr_spec attrs[] = {CONVOLUTION3D_ATTRS, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,3,4,3,2] f32[2,3,2,2,3]",
    "f32[1,4,3,5,2] f32[3,3,3,2,2] | strides=[2,1,2] padding=same",
    "f32[1,5,3,4,1] f32[2,2,1,1,2] | dilations=[3,1,2]",
    "f32[2,2,3,3,4] f32[2,2,2,2,6] | groups=2 strides=[1,2,1] padding=same",
    "f32[1,2,2,2,3] f32[2,1,2,1,3] | groups=3",
    "f32[1,2,3,2,1] f32[3,2,2,1,2] | padding=explicit pads=[2,1,0,1,1,0] strides=[2,1,1]",
    NULL,
};

const tutti_op tutti_op_conv3d = {
    .struct_size = sizeof(tutti_op),
    .name = "conv3d",
    .version = 1,
    .doc =
        "conv3d(x, kernel): y[n,d,h,w,f] = sum over l,i,j,c of x[n, d*stride - pad + l*dilation, "
        "h*… + i*dilation, w*… + j*dilation, c] * kernel[l,i,j,c,f]; channels and filters in "
        "`groups` parts that do not mix",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .attrs = attrs,
    .infer = conv3d_infer,
    .gradient = tutti__conv_gradient,
    .cost = tutti__conv_cost,
    .split = tutti__conv_split,
    .reference = tutti__conv_reference,
    .samples = samples,
};
