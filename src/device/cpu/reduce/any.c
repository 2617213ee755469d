/* any.c: whether some element is true, over any axes. */
#include "device/cpu/reduce/reduce.h"

REDUCE_BOOLS(REDUCE_MAX)
REDUCE_KERNEL(false)

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_any) = {
    .name = "any.blocks",
    .version = 1,
    .op = "any",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = run,
};
