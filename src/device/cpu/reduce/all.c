/* all.c: whether all elements are true, over any axes. */
#include "device/cpu/reduce/reduce.h"

REDUCE_BOOLS(REDUCE_MIN)
REDUCE_KERNEL(false)

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_all) = {
    .name = "all.blocks",
    .version = 1,
    .op = "all",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = run,
};
