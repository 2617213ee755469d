/* mean.c: the mean over any axes. */
#include "device/cpu/reduce/reduce.h"

REDUCE_FLOATS(REDUCE_SUM)
REDUCE_KERNEL(true)

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_mean) = {
    .name = "mean.blocks",
    .version = 2,
    .op = "mean",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = run,
};
