/* matmul_integer.c: matmul_integer by the CPU's products of bytes. */
#include "device/cpu/int8/kernels.h"

static int matmul_integer_score(const tutti_kernel_query *query)
{
    return tutti__int8_matmul_score(query, tutti__matmul_integer_inputs());
}

static size_t matmul_integer_workspace(const tutti_kernel_query *query)
{
    return tutti__int8_matmul_workspace(query, tutti__matmul_integer_inputs());
}

static tutti_status matmul_integer_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__int8_matmul_prepare(query, tutti__matmul_integer_inputs(), ret_plan);
}

static tutti_status matmul_integer_run(const tutti_kernel_call *call)
{
    return tutti__int8_matmul_run(call, tutti__matmul_integer_inputs());
}

/* Sums of integers are exact: the same bits whatever the tile. */
const tutti_kernel tutti_kernel_matmul_integer_int8 = {
    .name = "matmul_integer.int8",
    .version = 1,
    .op = "matmul_integer",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = matmul_integer_score,
    .workspace = matmul_integer_workspace,
    .prepare = matmul_integer_prepare,
    .discard = tutti__int8_discard,
    .run = matmul_integer_run,
};
