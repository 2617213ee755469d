/* rms_norm.c: y = x / sqrt(mean(x^2) + epsilon) * scale, row by row. */
#include "device/cpu/row/norm.h"

static tutti_status rms_norm_run(const tutti_kernel_call *call)
{
    return norm_run(call, false);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_rms_norm) = {
    .name = "rms_norm.rows",
    .version = 1,
    .op = "rms_norm",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = 1,
    .score = norm_score,
    .run = rms_norm_run,
};
