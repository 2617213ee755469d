/* mean.c: the mean over one block of neighbouring axes. */
#include <stdlib.h>

#include "device/cpu/learn/reduce_sum.h"
#include "program/isa.h"

static tutti_status run(const tutti_call *call) { return reduce_run(call, true); }

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_mean_block) = {
    .name = "mean.block",
    .version = 1,
    .op = "mean",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = reduce_score,
    .workspace = reduce_workspace,
    .prepare = reduce_prepare,
    .discard = free,
    .run = run,
};
