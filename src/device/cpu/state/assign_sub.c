/* assign_sub.c: v -= x, in one pass over the memory. */
#include "device/cpu/state/assign.h"

static tutti_status assign_sub_run(const tutti_kernel_call *call)
{
    return assign_run(call, -1);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_assign_sub) = {
    .name = "assign_sub.pass",
    .version = 1,
    .op = "assign_sub",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = assign_score,
    .run = assign_sub_run,
};
