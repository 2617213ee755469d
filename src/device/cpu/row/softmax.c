/* softmax.c: y = e^x / sum(e^x) along an axis, shifted by the largest x. */
#include "device/cpu/row/softmax.h"

static tutti_status run(const tutti_kernel_call *call)
{
    return softmax_run(call, false);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_softmax) = {
    .name = "softmax.rows",
    .version = 1,
    .op = "softmax",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = 1,
    .score = softmax_score,
    .prepare = softmax_prepare,
    .discard = free,
    .run = run,
};
