/* depthwise_qlinear_conv.c: qlinear_conv with a filter for each channel. */
#include "base/isa.h"
#include "device/cpu/int8/depthwise.h"

static int depthwise_qlinear_conv_score(const tutti_kernel_query *query)
{
    return depthwise_score(query, tutti__qlinear_conv_inputs());
}

static size_t depthwise_qlinear_conv_workspace(const tutti_kernel_query *query)
{
    return depthwise_workspace(query, tutti__qlinear_conv_inputs());
}

static tutti_status depthwise_qlinear_conv_run(const tutti_kernel_call *call)
{
    return depthwise_run(call, tutti__qlinear_conv_inputs());
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_depthwise_qlinear_conv) = {
    .name = "qlinear_conv.depthwise",
    .version = 1,
    .op = "qlinear_conv",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = depthwise_qlinear_conv_score,
    .workspace = depthwise_qlinear_conv_workspace,
    .run = depthwise_qlinear_conv_run,
};
