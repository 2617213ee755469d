/* broadcast.c: everybody gets the root's input. */
#include "exec/kernels/axis_group.h"

static tutti_status broadcast_run(const tutti_kernel_call *call)
{
    tutti_axis_group_meeting meeting;
    const tutti_view *out = &call->outputs[0];
    int64_t count = tutti_view_count(out);
    int root = (int)tutti__call_int(call, "root");
    if (tutti__call_int(call, "size") == 1)
        return call->op->reference(call);
    TUTTI_TRY(tutti__axis_group_begin(call, &meeting));
    if (meeting.rank == root)
        tutti__call_copy(call);
    tutti_status status = TUTTI_OK;
    if (count > 0)
        status = tutti__axis_group_broadcast(meeting.axis_group, meeting.local, out->data, count,
                                             out->dtype, root, &meeting.call);
    return tutti__axis_group_done(call, &meeting, status,
                                  count * (int64_t)tutti_dtype_size(out->dtype));
}

const tutti_kernel tutti_kernel_broadcast = {
    .name = "broadcast.group",
    .version = 1,
    .op = "broadcast",
    .target = "cpu",
    .isa = "base",
    .inplace = 1,
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = broadcast_run,
};
