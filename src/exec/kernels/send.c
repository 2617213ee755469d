/* send.c: leaves a copy of its input for the recv of the same channel. */
#include "exec/kernels/host.h"
#include "exec/run/rendezvous.h"

static tutti_status send_run(const tutti_kernel_call *call)
{
    tutti_tensor *copy;
    TUTTI_TRY(tutti__copy_input(call, 0, &copy));
    tutti_status status =
        tutti__rendezvous_send(tutti__context(call)->run,
                               tutti_attr_string(call->attrs, call->attr_count, "channel"), copy);
    tutti_tensor_release(copy);
    return status;
}

const tutti_kernel tutti_kernel_send = {
    .name = "send.local",
    .version = 1,
    .op = "send",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_TENSORS | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = send_run,
};
