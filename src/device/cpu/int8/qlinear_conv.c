/* qlinear_conv.c: qlinear_conv by the CPU's products of bytes. */
#include "device/cpu/int8/kernels.h"

static int qlinear_conv_score(const tutti_kernel_query *query)
{
    return tutti__int8_conv_score(query, tutti__qlinear_conv_inputs());
}

static size_t qlinear_conv_workspace(const tutti_kernel_query *query)
{
    return tutti__int8_conv_workspace(query, tutti__qlinear_conv_inputs());
}

static tutti_status qlinear_conv_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__int8_conv_prepare(query, tutti__qlinear_conv_inputs(), ret_plan);
}

static tutti_status qlinear_conv_run(const tutti_kernel_call *call)
{
    return tutti__int8_conv_run(call, tutti__qlinear_conv_inputs());
}

/* Sums of integers are exact: the same bits whatever the tile. */
const tutti_kernel tutti_kernel_qlinear_conv_int8 = {
    .name = "qlinear_conv.int8",
    .version = 1,
    .op = "qlinear_conv",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = qlinear_conv_score,
    .workspace = qlinear_conv_workspace,
    .prepare = qlinear_conv_prepare,
    .discard = tutti__int8_discard,
    .run = qlinear_conv_run,
};
