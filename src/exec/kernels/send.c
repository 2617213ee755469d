/* send.c: gives its input to the recv of the same channel: leaves a copy for a device of this
 * process, sends it to one of another. */
#include "base/world.h"
#include "exec/kernels/host.h"
#include "exec/run/rendezvous.h"
#include "parallel/collectives/axis_groups.h"

/* What leaves the process is read before the call ends, and needs no copy; a device's memory is not
 * for reading. */
static tutti_status value_of(const tutti_kernel_call *call, bool leaves, tutti_tensor **ret)
{
    bool lies_here = !tutti__context(call)->host.take;
    return leaves && lies_here ? tutti__borrow_input(call, 0, ret)
                               : tutti__copy_input(call, 0, ret);
}

static tutti_status send_run(const tutti_kernel_call *call)
{
    tutti_run *run = tutti__context(call)->run;
    const char *channel = tutti_attr_string(call->attrs, call->attr_count, "channel"),
               *to = tutti_attr_string(call->attrs, call->attr_count, "to");
    int process = tutti__axis_groups_process(run->groups, to);
    bool leaves = run->groups && process != run->groups->process;
    tutti_tensor *value;
    TUTTI_TRY(value_of(call, leaves, &value));
    tutti_status status =
        leaves ? tutti__axis_groups_send(run->groups, process, channel, value,
                                         1e-9 * (double)(call->deadline - tutti__now_ns()))
               : tutti__rendezvous_send(run, channel, value);
    tutti_tensor_release(value);
    return status == TUTTI_OK || !leaves
               ? status
               : tutti__error_prefix(status, "send '%s' to %s", call->name, to);
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
