/* matmul_bias_activation.c: y = f(a b + bias), bias a row, f the identity or relu. */
#include <string.h>

#include "base/isa.h"
#include "device/cpu/isa.h"
#include "device/cpu/matmul_dense.h"

static int matmul_bias_activation_score(const tutti_kernel_query *query)
{
    tutti_dense layer;
    bool here = strcmp(TUTTI_ISA_TEXT, tutti__best_isa()) == 0;
    return here && tutti__dense_take(&query->node, &layer) ? 100 : 0;
}

static size_t matmul_bias_activation_workspace(const tutti_kernel_query *query)
{
    return tutti__dense_workspace(query, false);
}

static tutti_status matmul_bias_activation_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    return tutti__dense_prepare(query, false, ret_plan);
}

/* Row-invariant when the product is, which deterministic mode sees to. */
const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_matmul_bias_activation) = {
    .name = "fused.matmul_bias_activation",
    .version = 2,
    .op = "fused",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = matmul_bias_activation_score,
    .workspace = matmul_bias_activation_workspace,
    .prepare = matmul_bias_activation_prepare,
    .discard = tutti__dense_discard,
    .reads = tutti__dense_reads,
    .run = tutti__dense_run,
};
