#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(kernel_average_pool_matches)
{
    tutti__kernel_check_op("average_pool2d");
    tutti__kernel_check_op("average_pool2d_backward");
    CHECK(tutti__kernel_check("average_pool2d",
                              "f32[3,20,21,17] | window=[3,2] strides=[2,1] padding=same", -1) > 0);
    CHECK(tutti__kernel_check(
              "average_pool2d_backward",
              "f32[3,10,21,17] | window=[3,2] strides=[2,1] padding=same size=[20,21]", -1) > 0);
}
