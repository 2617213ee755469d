/* assign_add.c: v += x, in one pass over the memory. */
#include "device/cpu/state/assign.h"

static tutti_status assign_add_run(const tutti_kernel_call *call)
{
    return assign_run(call, 1);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_assign_add) = {
    .name = "assign_add.pass",
    .version = 1,
    .op = "assign_add",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = assign_score,
    .run = assign_add_run,
};
