/* random_uniform_kernel_test.c: the reference's bits. */
#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(kernel_random_uniform_matches)
{
    tutti__kernel_check_op("random_uniform");
    CHECK(tutti__kernel_check("random_uniform", "i64[]{=3} | dims=[100,101] low=-2 high=3", 0) > 0);
}
