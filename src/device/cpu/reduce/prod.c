/* prod.c: the product over any axes. */
#include "device/cpu/reduce/reduce.h"

REDUCE_WIDE_NUMBERS(REDUCE_PRODUCT)
REDUCE_KERNEL(false)

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_prod) = {
    .name = "prod.blocks",
    .version = 2,
    .op = "prod",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = score,
    .workspace = workspace,
    .prepare = prepare,
    .discard = free,
    .run = run,
};
