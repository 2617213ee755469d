/* all_reduce_wait.c: the end of a sum over the replicas that was started earlier. */
#include "exec/kernels/axis_group.h"

static tutti_status all_reduce_wait_run(const tutti_kernel_call *call)
{
    tutti_axis_group_meeting meeting;
    if (tutti__call_int(call, "size") == 1)
        return TUTTI_OK;
    TUTTI_TRY(tutti__axis_group_begin(call, &meeting));
    tutti_status status = tutti__axis_group_finish(
        meeting.axis_group, tutti_attr_string(call->attrs, call->attr_count, "channel"));
    return tutti__axis_group_done(call, &meeting, status, 0);
}

const tutti_kernel tutti_kernel_all_reduce_wait = {
    .name = "all_reduce_wait.group",
    .version = 1,
    .op = "all_reduce_wait",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = all_reduce_wait_run,
};
