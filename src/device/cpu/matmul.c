/* matmul.c: products of matrices of floats. */
#include <string.h>

#include "base/isa.h"
#include "device/cpu/isa.h"
#include "device/cpu/matmul_product.h"

static int matmul_score(const tutti_kernel_query *query)
{
    tutti_dtype dtype = query->node.outputs[0].dtype;
    bool wanted = dtype == TUTTI_F32 || dtype == TUTTI_F16 || dtype == TUTTI_BF16;
    return wanted && strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) == 0 ? 100 : 0;
}

static size_t matmul_workspace(const tutti_kernel_query *query)
{
    return tutti__matmul_workspace(query, TUTTI_GEMM_RIVALS);
}

static tutti_status matmul_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    tutti_matmul_plan *plan;
    TUTTI_TRY(tutti__matmul_prepare(query, TUTTI_GEMM_RIVALS, &plan));
    *ret_plan = plan;
    return TUTTI_OK;
}

static tutti_status matmul_run(const tutti_kernel_call *call)
{
    tutti__matmul_run(call, call->plan, &call->inputs[0], &call->inputs[1],
                      (tutti_matmul_finish){0});
    return TUTTI_OK;
}

/* Row-invariant with the plain tiles, which is what deterministic mode plans. */
const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_matmul) = {
    .name = "matmul.gemm",
    .version = 4,
    .op = "matmul",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = matmul_score,
    .workspace = matmul_workspace,
    .prepare = matmul_prepare,
    .discard = tutti__matmul_discard,
    .reads = tutti__matmul_reads,
    .run = matmul_run,
};
