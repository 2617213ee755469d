/* learn_test.c: the kernels of a training step against their references. */
#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(training_kernels_agree_with_their_references)
{
    static const char *const ops[] = {"sum", "mean", "assign", "adam_update", "sgd_update", "max_pool2d", "max_pool2d_backward",
                                      "random_uniform", NULL};
    for (int i = 0; ops[i]; i++)
        tutti__kernel_check_op(ops[i]);
}

TUTTI_TEST(training_kernels_agree_on_larger_shapes)
{
    CHECK(tutti__kernel_check("sum", "f32[5000,33] | axes=[0]", 1e-3) > 0);
    CHECK(tutti__kernel_check("sum", "f32[70001]", 1e-3) > 0);
    CHECK(tutti__kernel_check("mean", "f32[3,700,40] | axes=[1]", 1e-5) > 0);
    CHECK(tutti__kernel_check("sum", "f32[40,700] | axes=[1] keep_dims=true", 1e-4) > 0);
    CHECK(tutti__kernel_check("max_pool2d", "f32[3,26,26,32]", 0) > 0);
    CHECK(tutti__kernel_check("max_pool2d_backward", "f32[3,26,26,70] f32[3,13,13,70]", 0) > 0);
    CHECK(tutti__kernel_check("max_pool2d_backward", "f32[2,9,9,3] f32[2,5,5,3] | window=[3,3] strides=[2,2] padding=same", 1e-6) > 0);
    CHECK(tutti__kernel_check("adam_update", "&f32[40000] &f32[40000] &f32[40000]{0.1:1} f32[40000] f32[]{0.1:0.2} i64[]{=3}", 1e-5) > 0);
    CHECK(tutti__kernel_check("random_uniform", "i64[]{=3} | dims=[100,101] low=-2 high=3", 0) > 0);
}
