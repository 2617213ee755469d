/* conv2d_backward_input_bf16.c: the gradient of a convolution's input by products of bf16, where
 * the node allows them. */
#include <stdlib.h>

#include "base/isa.h"
#include "device/cpu/conv/rounded.h"

static int conv2d_backward_input_bf16_score(const tutti_kernel_query *query)
{
    return tutti__rounded_score(query, TUTTI_ISA_TEXT, true);
}

static size_t conv2d_backward_input_bf16_workspace(const tutti_kernel_query *query)
{
    return tutti__rounded_needs(query, TUTTI_ISA_TEXT, true);
}

static tutti_status conv2d_backward_input_bf16_prepare(const tutti_kernel_query *query,
                                                       void **ret_plan)
{
    return tutti__rounded_prepare(query, TUTTI_ISA_TEXT, true, ret_plan);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_conv2d_backward_input_bf16) = {
    .name = "conv2d_backward_input.bf16",
    .version = 1,
    .op = "conv2d_backward_input",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = conv2d_backward_input_bf16_score,
    .workspace = conv2d_backward_input_bf16_workspace,
    .prepare = conv2d_backward_input_bf16_prepare,
    .discard = free,
    .run = tutti__rounded_run_node,
};
