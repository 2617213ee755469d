/* conv_integer.c: conv_integer by the CPU's products of bytes. */
#include "device/cpu/int8/kernels.h"

static int conv_integer_score(const tutti_kernel_query *query)
{
    return tutti__int8_conv_score(query, tutti__conv_integer_inputs());
}

static size_t conv_integer_workspace(const tutti_kernel_query *query)
{
    return tutti__int8_conv_workspace(query, tutti__conv_integer_inputs());
}

static tutti_status conv_integer_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__int8_conv_prepare(query, tutti__conv_integer_inputs(), ret_plan);
}

static tutti_status conv_integer_run(const tutti_kernel_call *call)
{
    return tutti__int8_conv_run(call, tutti__conv_integer_inputs());
}

/* Sums of integers are exact: the same bits whatever the tile. */
const tutti_kernel tutti_kernel_conv_integer_int8 = {
    .name = "conv_integer.int8",
    .version = 1,
    .op = "conv_integer",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = conv_integer_score,
    .workspace = conv_integer_workspace,
    .prepare = conv_integer_prepare,
    .discard = tutti__int8_discard,
    .run = conv_integer_run,
};
