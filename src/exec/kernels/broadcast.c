/* broadcast.c: everybody gets the root's input. */
#include "exec/kernels/collective.h"

static tutti_status broadcast_run(const tutti_kernel_call *call)
{
    tutti_meeting meeting;
    TUTTI_TRY(tutti__meet(call, &meeting));
    tutti_status status = tutti__fill_output(call, 0, meeting.all[tutti__call_int(call, "root")]);
    tutti__meeting_end(&meeting);
    return status;
}

const tutti_kernel tutti_kernel_broadcast = {
    .name = "broadcast.local",
    .version = 1,
    .op = "broadcast",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = broadcast_run,
};
