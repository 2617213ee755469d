/* recv.c: waits for what the send of the same channel leaves. */
#include "exec/kernels/host.h"
#include "exec/run/rendezvous.h"

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

static tutti_status recv_run(const tutti_kernel_call *call)
{
    tutti_tensor *value;
    TUTTI_TRY(tutti__rendezvous_recv(
        tutti__context(call)->run, tutti_attr_string(call->attrs, call->attr_count, "channel"),
        tutti_attr_string(call->attrs, call->attr_count, "from"), call->name, &value));
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
