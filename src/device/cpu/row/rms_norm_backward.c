/* rms_norm_backward.c: gradients of rms_norm: dx row by row, dscale summed over rows. */
#include "device/cpu/row/norm.h"

static tutti_status rms_norm_backward_run(const tutti_kernel_call *call)
{
    return norm_run_backward(call, false);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_rms_norm_backward) = {
    .name = "rms_norm_backward.rows",
    .version = 1,
    .op = "rms_norm_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = norm_score,
    .workspace = norm_backward_workspace,
    .run = rms_norm_backward_run,
};
