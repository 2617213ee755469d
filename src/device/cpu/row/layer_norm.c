/* layer_norm.c: y = (x - mean) / sqrt(variance + epsilon) * scale + offset, row by row. */
#include "device/cpu/row/norm.h"

static tutti_status layer_norm_run(const tutti_kernel_call *call)
{
    return norm_run(call, true);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_layer_norm) = {
    .name = "layer_norm.rows",
    .version = 2,
    .op = "layer_norm",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = 1,
    .score = norm_score,
    .run = layer_norm_run,
};
