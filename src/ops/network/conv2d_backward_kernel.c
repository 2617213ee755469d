/* conv2d_backward_kernel.c: the gradient of conv2d's kernel. */
#include "ops/network/window.h"

static tutti_status conv2d_backward_kernel_infer(tutti_infer *node)
{
    return tutti__conv_kernel_infer(node, 2);
}

static const tutti_attr_spec attrs[] = {CONVOLUTION_ATTRS,
                                        PRODUCTS_ATTR,
                                        {"size", TUTTI_ATTR_INTS, "[0,0]"},
                                        {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,5,4,2] f32[2,3,3,3] | size=[3,2]",
    "f32[1,6,5,2] f32[1,3,3,2] f32[3,3,2,2] | strides=[2,2] padding=same",
    "f32[1,7,6,1] f32[1,5,2,2] | dilations=[2,2] size=[2,3]",
    "f32[2,4,5,4] f32[2,3,2,6] | groups=2 strides=[1,2] size=[2,2]",
    "f32[1,4,4,3] f32[1,4,4,3] | groups=3 padding=same size=[3,3]",
    "f32[1,3,4,2] f32[1,2,6,2] | padding=explicit pads=[2,1,0,3] strides=[2,1] size=[3,2]",
    NULL,
};

const tutti_op tutti_op_conv2d_backward_kernel = {
    .struct_size = sizeof(tutti_op),
    .name = "conv2d_backward_kernel",
    .version = 1,
    .doc = "conv2d_backward_kernel(x, grad[, kernel]): dkernel, where dL/dy = grad and "
           "y = conv2d(x, kernel); the kernel's height and width are `size` or those of kernel",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = attrs,
    .infer = conv2d_backward_kernel_infer,
    .gradient = tutti__conv_kernel_gradient,
    .cost = tutti__conv_kernel_cost,
    .split = tutti__conv_kernel_split,
    .reference = tutti__conv_kernel_reference,
    .samples = samples,
};
