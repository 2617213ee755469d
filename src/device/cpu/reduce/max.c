/* max.c: the largest element over any axes. */
#include "device/cpu/reduce/reduce.h"

REDUCE_NUMBERS(REDUCE_MAX)
REDUCE_KERNEL(false)

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_max) = {
    .name = "max.blocks",
    .version = 2,
    .op = "max",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = run,
};
