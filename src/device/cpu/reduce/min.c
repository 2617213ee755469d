/* min.c: the smallest element over any axes. */
#include "device/cpu/reduce/reduce.h"

REDUCE_NUMBERS(REDUCE_MIN)
REDUCE_KERNEL(false)

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_min) = {
    .name = "min.blocks",
    .version = 2,
    .op = "min",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = run,
};
