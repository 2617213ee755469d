/* matmul_tiles.c: the tiles where "auto" would give a product to a library: which of the two is
 * faster depends on the machine, so they compete (program/tune.h). */

#include "device/cpu/gemm/engine.h"
#include "device/cpu/matmul_product.h"

static int matmul_tiles_score(const tutti_kernel_query *query)
{
    if (query->node.outputs[0].dtype != TUTTI_F32 || query->deterministic ||
        !tutti__gemm_engine_auto())
        return 0;
    return tutti__matmul_by_library(query) ? 100 : 0;
}

static size_t matmul_tiles_workspace(const tutti_kernel_query *query)
{
    return tutti__matmul_workspace(query, TUTTI_GEMM_PLAIN);
}

static tutti_status matmul_tiles_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    tutti_matmul_plan *plan;
    TUTTI_TRY(tutti__matmul_prepare(query, TUTTI_GEMM_PLAIN, &plan));
    *ret_plan = plan;
    return TUTTI_OK;
}

static tutti_status matmul_tiles_run(const tutti_kernel_call *call)
{
    tutti__matmul_run(call, call->plan, &call->inputs[0], &call->inputs[1],
                      (tutti_matmul_finish){0});
    return TUTTI_OK;
}

const tutti_kernel tutti_kernel_matmul_tiles = {
    .name = "matmul.tiles",
    .version = 3,
    .op = "matmul",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_ROW_INVARIANT | TUTTI_KERNEL_TUNED,
    .score = matmul_tiles_score,
    .workspace = matmul_tiles_workspace,
    .prepare = matmul_tiles_prepare,
    .discard = tutti__matmul_discard,
    .reads = tutti__matmul_reads,
    .run = matmul_tiles_run,
};
