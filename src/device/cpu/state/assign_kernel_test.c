#include "base/test.h"
#include "device/cpu/kernel_check.h"

TUTTI_TEST(kernel_assignments_match)
{
    tutti__kernel_check_op("assign");
    tutti__kernel_check_op("assign_add");
    tutti__kernel_check_op("assign_sub");
    CHECK(tutti__kernel_check("assign_add", "&f32[40001] f32[40001]", -1) > 0);
    CHECK(tutti__kernel_check("assign_sub", "&f32[0] f32[0]", -1) > 0);
}
