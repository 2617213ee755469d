/* pull.c: a variable's value, which the run asked the servers for when it began. */
#include "exec/kernels/host.h"
#include "exec/plan/server_variables.h"

static tutti_status pull_run(const tutti_kernel_call *call)
{
    const tutti_server_run *servers = tutti__context(call)->run->servers;
    int64_t number = tutti__call_int(call, "number");
    if (!servers || number >= servers->count || !servers->values[number])
        return tutti_fail(TUTTI_INTERNAL, "pull '%s': the run has no such value", call->name);
    return tutti__fill_output(call, 0, servers->values[number]);
}

const tutti_kernel tutti_kernel_pull = {
    .name = "pull.servers",
    .version = 1,
    .op = "pull",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_TENSORS | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = pull_run,
};
