/* recv.c: waits for what the send of the same channel leaves, on another device of this process or
 * of another one. */
#include "base/world.h"
#include "exec/kernels/host.h"
#include "exec/run/rendezvous.h"
#include "parallel/collectives/axis_groups.h"

/* What was sent must be what is expected, as far as that is known. */
static tutti_status check_type(const tutti_kernel_call *call, const tutti_type *sent)
{
    const tutti_view *output = &call->outputs[0];
    tutti_type expected = {.dtype = output->dtype, .rank = output->rank};
    bool same = sent->dtype == output->dtype && sent->rank == output->rank;
    for (int i = 0; i < output->rank; i++) {
        expected.dims[i] = output->dims[i];
        same = same && (output->dims[i] < 0 || output->dims[i] == sent->dims[i]);
    }
    if (same)
        return TUTTI_OK;
    char there[TUTTI_TYPE_TEXT], here[TUTTI_TYPE_TEXT];
    return tutti_fail(TUTTI_INVALID, "recv '%s': channel '%s' was sent %s, and %s is expected",
                      call->name, tutti_attr_string(call->attrs, call->attr_count, "channel"),
                      tutti_type_text(sent, there), tutti_type_text(&expected, here));
}

static tutti_status take(const tutti_kernel_call *call, tutti_tensor **ret)
{
    tutti_run *run = tutti__context(call)->run;
    const char *channel = tutti_attr_string(call->attrs, call->attr_count, "channel"),
               *from = tutti_attr_string(call->attrs, call->attr_count, "from");
    int process = tutti__axis_groups_process(run->groups, from);
    if (!run->groups || process == run->groups->process)
        return tutti__rendezvous_recv(run, channel, from, call->name, ret);
    tutti_status status = tutti__axis_groups_recv(
        run->groups, process, channel, 1e-9 * (double)(call->deadline - tutti__now_ns()), ret);
    return status == TUTTI_OK ? TUTTI_OK
                              : tutti__error_prefix(status, "recv '%s' from %s", call->name, from);
}

static tutti_status recv_run(const tutti_kernel_call *call)
{
    tutti_tensor *value;
    TUTTI_TRY(take(call, &value));
    tutti_status status = check_type(call, tutti_tensor_type(value));
    if (status == TUTTI_OK)
        status = tutti__fill_output(call, 0, value);
    tutti_tensor_release(value);
    return status;
}

const tutti_kernel tutti_kernel_recv = {
    .name = "recv.local",
    .version = 1,
    .op = "recv",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_TENSORS | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = recv_run,
};
