/* update_kernel_test.c: optimizers' updates against their references. */
#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(kernel_updates_match)
{
    tutti__kernel_check_op("adam_update");
    tutti__kernel_check_op("sgd_update");
    CHECK(tutti__kernel_check(
              "adam_update",
              "&f32[40000] &f32[40000] &f32[40000]{0.1:1} f32[40000] f32[]{0.1:0.2} i64[]{=3}",
              1e-5) > 0);
    CHECK(tutti__kernel_check("sgd_update", "&f32[70001] f32[70001] f32[]{0.1:0.2}", 1e-6) > 0);
}
