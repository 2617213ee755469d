/* max_pool_kernel_test.c: max-pooling against its references. */
#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(kernel_max_pools_match)
{
    tutti__kernel_check_op("max_pool2d");
    tutti__kernel_check_op("max_pool2d_backward");
    CHECK(tutti__kernel_check("max_pool2d", "f32[3,26,26,32]", 0) > 0);
    CHECK(tutti__kernel_check("max_pool2d_backward", "f32[3,26,26,32] f32[3,13,13,32]", 0) > 0);
    CHECK(tutti__kernel_check("max_pool2d_backward", "f32[3,26,26,70] f32[3,13,13,70]", 0) > 0);
    CHECK(tutti__kernel_check("max_pool2d_backward",
                              "f32[2,9,9,3] f32[2,5,5,3] | window=[3,3] strides=[2,2] padding=same",
                              1e-6) > 0);
}
