/* qlinear_matmul.c: qlinear_matmul by the CPU's products of bytes. */
#include "device/cpu/int8/kernels.h"

static int qlinear_matmul_score(const tutti_kernel_query *query)
{
    return tutti__int8_matmul_score(query, tutti__qlinear_matmul_inputs());
}

static size_t qlinear_matmul_workspace(const tutti_kernel_query *query)
{
    return tutti__int8_matmul_workspace(query, tutti__qlinear_matmul_inputs());
}

static tutti_status qlinear_matmul_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__int8_matmul_prepare(query, tutti__qlinear_matmul_inputs(), ret_plan);
}

static tutti_status qlinear_matmul_run(const tutti_kernel_call *call)
{
    return tutti__int8_matmul_run(call, tutti__qlinear_matmul_inputs());
}

/* Sums of integers are exact: the same bits whatever the tile. */
const tutti_kernel tutti_kernel_qlinear_matmul_int8 = {
    .name = "qlinear_matmul.int8",
    .version = 1,
    .op = "qlinear_matmul",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = qlinear_matmul_score,
    .workspace = qlinear_matmul_workspace,
    .prepare = qlinear_matmul_prepare,
    .discard = tutti__int8_discard,
    .run = qlinear_matmul_run,
};
