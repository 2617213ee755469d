/* matmul_bf16.c: products of bf16 by the CPU's own instructions for them, summed in f32. */
#include <string.h>

#include "base/isa.h"
#include "device/cpu/gemm/tile.h"
#include "device/cpu/matmul_product.h"

static int matmul_bf16_score(const tutti_kernel_query *query)
{
    const tutti_gemm_tile *tile = tutti__gemm_bf16_tile();
    bool wanted = query->node.outputs[0].dtype == TUTTI_BF16;
    return wanted && tile != NULL && strcmp(TUTTI_ISA_TEXT, tile->isa) == 0 ? 120 : 0;
}

static size_t matmul_bf16_workspace(const tutti_kernel_query *query)
{
    return tutti__matmul_workspace(query, TUTTI_GEMM_BF16);
}

static tutti_status matmul_bf16_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    tutti_matmul_plan *plan;
    TUTTI_TRY(tutti__matmul_prepare(query, TUTTI_GEMM_BF16, &plan));
    *ret_plan = plan;
    return TUTTI_OK;
}

static tutti_status matmul_bf16_run(const tutti_kernel_call *call)
{
    tutti__matmul_run(call, call->plan, &call->inputs[0], &call->inputs[1],
                      (tutti_matmul_finish){0});
    return TUTTI_OK;
}

/* Every element depends on its row and column only. */
const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_matmul_bf16) = {
    .name = "matmul.bf16",
    .version = 1,
    .op = "matmul",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = matmul_bf16_score,
    .workspace = matmul_bf16_workspace,
    .prepare = matmul_bf16_prepare,
    .discard = tutti__matmul_discard,
    .reads = tutti__matmul_reads,
    .run = matmul_bf16_run,
};
