/* conv2d_backward_input.c: the gradient of conv2d's input; also known as transposed convolution. */
#include "ops/network/window.h"

static tutti_status conv2d_backward_input_infer(tutti_infer *node)
{
    return tutti__conv_input_infer(node, 2);
}

static const tutti_attr_spec attrs[] = {CONVOLUTION_ATTRS,
                                        PRODUCTS_ATTR,
                                        {"size", TUTTI_ATTR_INTS, "[0,0]"},
                                        {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[3,2,2,3] f32[2,3,3,3] | size=[5,4]",
    "f32[3,3,2,2] f32[1,3,3,2] f32[1,6,5,2] | strides=[2,2] padding=same",
    "f32[2,3,1,2] f32[1,5,2,2] | dilations=[2,2] size=[7,6]",
    "f32[2,2,2,6] f32[2,3,2,6] | groups=2 strides=[1,2] size=[4,5]",
    "f32[3,3,1,3] f32[1,4,4,3] | groups=3 padding=same size=[4,4]",
    "f32[3,2,2,2] f32[1,2,6,2] | padding=explicit pads=[2,1,0,3] strides=[2,1] size=[3,4]",
    "f32[3,2,2,1] f32[1,3,2,1] | strides=[2,3]",
    "f32[3,2,2,1] f32[1,2,2,1] | strides=[2,1] padding=explicit pads=[1,1,0,1] size=[-1,0]",
    "f32[1,1,2,2] f32[1,1,2,2] | strides=[3,1] padding=explicit pads=[1,1,0,0] size=[-2,0]",
    NULL,
};

const tutti_op tutti_op_conv2d_backward_input = {
    .struct_size = sizeof(tutti_op),
    .name = "conv2d_backward_input",
    .version = 1,
    .doc =
        "conv2d_backward_input(kernel, grad[, x]): dx, where dL/dy = grad and "
        "y = conv2d(x, kernel); x's height and width are those of x or `size`, of which s <= 0 is the natural size and -s more",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = attrs,
    .infer = conv2d_backward_input_infer,
    .gradient = tutti__conv_input_gradient,
    .cost = tutti__conv_input_cost,
    .split = tutti__conv_input_split,
    .reference = tutti__conv_input_reference,
    .samples = samples,
};
