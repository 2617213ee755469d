#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(kernel_dropout_draws_the_same_numbers)
{
    tutti__kernel_check_op("dropout");
    CHECK(tutti__kernel_check("dropout", "f32[20001] i64[]{=5} | rate=0.3 seed=9", -1) > 0);
    CHECK(tutti__kernel_check("dropout", "f32[3,7] i64[]{=5} | rate=0.999", -1) > 0);
}
