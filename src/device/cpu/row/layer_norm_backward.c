/* layer_norm_backward.c: gradients of layer_norm: dx row by row, dscale and doffset summed over
 * rows. */
#include "device/cpu/row/norm.h"

static tutti_status layer_norm_backward_run(const tutti_kernel_call *call)
{
    return norm_run_backward(call, true);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_layer_norm_backward) = {
    .name = "layer_norm_backward.rows",
    .version = 2,
    .op = "layer_norm_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = norm_score,
    .workspace = norm_backward_workspace,
    .run = layer_norm_backward_run,
};
