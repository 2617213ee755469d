/* depthwise_conv_integer.c: conv_integer with a filter for each channel. */
#include "base/isa.h"
#include "device/cpu/int8/depthwise.h"

static int depthwise_conv_integer_score(const tutti_kernel_query *query)
{
    return depthwise_score(query, tutti__conv_integer_inputs());
}

static size_t depthwise_conv_integer_workspace(const tutti_kernel_query *query)
{
    return depthwise_workspace(query, tutti__conv_integer_inputs());
}

static tutti_status depthwise_conv_integer_run(const tutti_kernel_call *call)
{
    return depthwise_run(call, tutti__conv_integer_inputs());
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_depthwise_conv_integer) = {
    .name = "conv_integer.depthwise",
    .version = 1,
    .op = "conv_integer",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = depthwise_conv_integer_score,
    .workspace = depthwise_conv_integer_workspace,
    .run = depthwise_conv_integer_run,
};
