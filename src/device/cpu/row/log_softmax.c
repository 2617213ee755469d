/* log_softmax.c: y = x - log(sum(e^x)) along an axis, shifted by the largest x. */
#include "device/cpu/row/softmax.h"

static tutti_status log_softmax_run(const tutti_kernel_call *call)
{
    return softmax_run(call, true);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_log_softmax) = {
    .name = "log_softmax.rows",
    .version = 1,
    .op = "log_softmax",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = 1,
    .score = softmax_score,
    .prepare = softmax_prepare,
    .discard = free,
    .run = log_softmax_run,
};
