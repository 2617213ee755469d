/* argmax.c: where the largest element along an axis is. */
#include "device/cpu/reduce/position.h"

POSITION_PIECES(true)

static tutti_status argmax_run(const tutti_kernel_call *call)
{
    return position_run(call, pieces);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_argmax) = {
    .name = "argmax.rows",
    .version = 1,
    .op = "argmax",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = position_score,
    .run = argmax_run,
};
