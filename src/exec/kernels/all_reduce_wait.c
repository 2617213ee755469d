/* all_reduce_wait.c: the end of a sum over the replicas that was started earlier. */
#include "exec/kernels/team.h"

static tutti_status run(const tutti_kernel_call *call)
{
    tutti_team_meeting meeting;
    if (tutti__call_int(call, "size") == 1)
        return TUTTI_OK;
    TUTTI_TRY(tutti__team_begin(call, &meeting));
    tutti_status status = tutti__team_finish(
        meeting.team, tutti_attr_string(call->attrs, call->attr_count, "channel"));
    return tutti__team_done(call, &meeting, status, 0);
}

const tutti_kernel tutti_kernel_all_reduce_wait = {
    .name = "all_reduce_wait.team",
    .version = 1,
    .op = "all_reduce_wait",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = run,
};
