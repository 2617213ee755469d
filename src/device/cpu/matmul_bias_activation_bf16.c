/* matmul_bias_activation_bf16.c: y = f(a b + bias) of bf16, by the CPU's own instructions. */
#include <string.h>

#include "base/isa.h"
#include "device/cpu/gemm/tile.h"
#include "device/cpu/matmul_dense.h"

/* Not in deterministic mode: the product is not rounded before the bias is added, and whether a row
 * is taken for a bias may depend on the rows that a replica has. */
static int matmul_bias_activation_bf16_score(const tutti_kernel_query *query)
{
    const tutti_gemm_tile *tile = tutti__gemm_bf16_tile();
    tutti_dense layer;
    bool here = tile != NULL && strcmp(TUTTI_ISA_TEXT, tile->isa) == 0;
    bool bf16 = query->node.outputs[0].dtype == TUTTI_BF16;
    return here && bf16 && !query->deterministic && tutti__dense_take(&query->node, &layer) ? 120
                                                                                            : 0;
}

static size_t matmul_bias_activation_bf16_workspace(const tutti_kernel_query *query)
{
    return tutti__dense_workspace(query, true);
}

static tutti_status matmul_bias_activation_bf16_prepare(const tutti_kernel_query *query,
                                                        void **ret_plan)
{
    return tutti__dense_prepare(query, true, ret_plan);
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_matmul_bias_activation_bf16) = {
    .name = "fused.matmul_bias_activation_bf16",
    .version = 1,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = matmul_bias_activation_bf16_score,
    .workspace = matmul_bias_activation_bf16_workspace,
    .prepare = matmul_bias_activation_bf16_prepare,
    .discard = tutti__dense_discard,
    .reads = tutti__dense_reads,
    .run = tutti__dense_run,
};
