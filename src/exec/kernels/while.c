/* while.c: runs a sub-graph until its condition no longer holds. */
#include "exec/kernels/sub_graph.h"

static tutti_status while_run(const tutti_kernel_call *call)
{
    tutti_values last = {0};
    TUTTI_TRY(tutti__loop_run(call, NULL, NULL, &last));
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < call->output_count; i++)
        status = tutti__fill_output(call, i, last.list[i]);
    tutti__values_free(&last);
    return status;
}

const tutti_kernel tutti_kernel_while = {
    .name = "while.sub_graph",
    .version = 1,
    .op = "while",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = while_run,
};
