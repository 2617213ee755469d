/* argmin.c: where the smallest element along an axis is. */
#include "device/cpu/reduce/position.h"

POSITION_PIECES(false)

static tutti_status argmin_run(const tutti_kernel_call *call)
{
    return position_run(call, pieces);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_argmin) = {
    .name = "argmin.rows",
    .version = 1,
    .op = "argmin",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = position_score,
    .run = argmin_run,
};
