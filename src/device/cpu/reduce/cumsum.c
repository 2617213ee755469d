/* cumsum.c: the running sum along an axis. */
#include "device/cpu/reduce/running.h"

RUNNING_KERNEL(0, +)

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_cumsum) = {
    .name = "cumsum.strips",
    .version = 1,
    .op = "cumsum",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = 1,
    .score = score,
    .prepare = running_prepare,
    .discard = free,
    .run = run,
};
