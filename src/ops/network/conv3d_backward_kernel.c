/* conv3d_backward_kernel.c: the gradient of conv3d's kernel. */
#include "ops/network/window.h"

static tutti_status conv3d_backward_kernel_infer(tutti_infer *node)
{
    return tutti__conv_kernel_infer(node, 3);
}

static const tutti_attr_spec attrs[] = {
    CONVOLUTION3D_ATTRS, {"size", TUTTI_ATTR_INTS, "[0,0,0]"}, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[2,3,4,3,2] f32[2,2,2,2,3] | size=[2,3,2]",
    "f32[1,4,3,5,2] f32[1,2,3,3,2] f32[3,3,3,2,2] | strides=[2,1,2] padding=same",
    "f32[1,5,3,4,1] f32[1,2,2,4,2] | dilations=[3,1,2] size=[2,2,1]",
    "f32[2,2,3,3,4] f32[2,2,2,3,6] | groups=2 strides=[1,2,1] padding=same size=[2,2,2]",
    "f32[1,2,2,2,3] f32[1,1,2,1,3] | groups=3 size=[2,1,2]",
    NULL,
};

const tutti_op tutti_op_conv3d_backward_kernel = {
    .struct_size = sizeof(tutti_op),
    .name = "conv3d_backward_kernel",
    .version = 1,
    .doc = "conv3d_backward_kernel(x, grad[, kernel]): dkernel, where dL/dy = grad and "
           "y = conv3d(x, kernel); the kernel's sizes are `size` or those of kernel",
    .category = "network",
    .min_inputs = 2,
    .max_inputs = 3,
    .outputs = 1,
    .attrs = attrs,
    .infer = conv3d_backward_kernel_infer,
    .gradient = tutti__conv_kernel_gradient,
    .cost = tutti__conv_kernel_cost,
    .split = tutti__conv_kernel_split,
    .reference = tutti__conv_kernel_reference,
    .samples = samples,
};
