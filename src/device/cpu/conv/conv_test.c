/* conv_test.c: direct convolutions against the references. */
#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(direct_convolutions_agree_with_their_references)
{
    tutti__kernel_check_op("conv2d");
    tutti__kernel_check_op("conv2d_backward_input");
    tutti__kernel_check_op("conv2d_backward_kernel");
}

TUTTI_TEST(direct_convolutions_agree_on_larger_shapes)
{
    static const char *const forward[] = {
        "f32[3,28,28,1] f32[3,3,1,32]",
        "f32[2,9,13,5] f32[3,3,5,17] | padding=same strides=[2,2]",
        "f32[1,11,8,3] f32[5,3,3,10] | dilations=[2,2] padding=same",
        "f32[2,7,20,8] f32[1,1,8,40]",
        NULL,
    };
    static const char *const input[] = {
        "f32[3,3,1,32] f32[3,26,26,32] | size=[28,28]",
        "f32[3,3,5,17] f32[2,5,7,17] | padding=same strides=[2,2] size=[9,13]",
        "f32[5,3,3,10] f32[1,11,8,10] | dilations=[2,2] padding=same size=[11,8]",
        NULL,
    };
    static const char *const kernel[] = {
        "f32[19,28,28,1] f32[19,26,26,32] | size=[3,3]",
        "f32[2,9,13,5] f32[2,5,7,17] | padding=same strides=[2,2] size=[3,3]",
        "f32[1,11,8,3] f32[1,11,8,10] | dilations=[2,2] padding=same size=[5,3]",
        NULL,
    };
    for (int i = 0; forward[i]; i++)
        CHECK(tutti__kernel_check("conv2d", forward[i], 1e-4) > 0);
    for (int i = 0; input[i]; i++)
        CHECK(tutti__kernel_check("conv2d_backward_input", input[i], 1e-4) > 0);
    for (int i = 0; kernel[i]; i++)
        CHECK(tutti__kernel_check("conv2d_backward_kernel", kernel[i], 1e-3) > 0);
}
