/* sum.c: the sum over any axes. */
#include "device/cpu/reduce/reduce.h"

REDUCE_NUMBERS(REDUCE_SUM)
REDUCE_KERNEL(false)

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_sum) = {
    .name = "sum.blocks",
    .version = 2,
    .op = "sum",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = run,
};
