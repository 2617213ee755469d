/* recv.c: waits for what the send of the same channel leaves. */
#include "exec/kernels/host.h"
#include "exec/rendezvous.h"

static tutti_status run(const tutti_call *call)
{
    tutti_tensor *value;
    TUTTI_TRY(tutti__rendezvous_recv(
        tutti__context(call)->run, tutti_attr_string(call->attrs, call->attr_count, "channel"),
        tutti_attr_string(call->attrs, call->attr_count, "from"), call->name, &value));
    tutti_status status = tutti__fill_output(call, 0, value);
    tutti_tensor_release(value);
    return status;
}

const tutti_kernel tutti_kernel_recv = {
    .name = "recv.local",
    .version = 1,
    .op = "recv",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = run,
};
