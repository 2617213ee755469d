/* reduce.c: the root gets the reduction of all inputs, the others zeros. */
#include "exec/kernels/collective.h"

#include <string.h>

static tutti_status run(const tutti_kernel_call *call)
{
    tutti_meeting meeting;
    tutti_tensor *sum = NULL;
    TUTTI_TRY(tutti__meet(call, &meeting));
    tutti_status status = TUTTI_OK;
    if (meeting.rank == (int)tutti__call_int(call, "root")) {
        status = tutti__meeting_reduce(call, &meeting, &sum);
        if (status == TUTTI_OK)
            status = tutti__fill_output(call, 0, sum);
    } else {
        const tutti_view *output = &call->outputs[0];
        memset(output->data, 0, (size_t)tutti_view_count(output) * tutti_dtype_size(output->dtype));
    }
    tutti_tensor_release(sum);
    tutti__meeting_end(&meeting);
    return status;
}

const tutti_kernel tutti_kernel_reduce = {
    .name = "reduce.local",
    .version = 1,
    .op = "reduce",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = run,
};
