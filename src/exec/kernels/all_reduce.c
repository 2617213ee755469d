/* all_reduce.c: everybody gets the reduction of all inputs. */
#include "exec/kernels/axis_group.h"
#include "exec/kernels/collective.h"

static tutti_status all_reduce_run(const tutti_kernel_call *call)
{
    tutti_meeting meeting;
    tutti_tensor *sum = NULL;
    if (tutti__call_axis_group(call))
        return tutti__call_reduce(call);
    TUTTI_TRY(tutti__meet(call, &meeting));
    tutti_status status = tutti__meeting_reduce(call, &meeting, &sum);
    if (status == TUTTI_OK)
        status = tutti__fill_output(call, 0, sum);
    tutti_tensor_release(sum);
    tutti__meeting_end(&meeting);
    return status;
}

const tutti_kernel tutti_kernel_all_reduce = {
    .name = "all_reduce.local",
    .version = 1,
    .op = "all_reduce",
    .target = "cpu",
    .isa = "base",
    .inplace = 1,
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = all_reduce_run,
};
