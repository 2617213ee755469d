/* reduce.c: the root gets the reduction of all inputs, the others zeros. */
#include <string.h>

#include "exec/kernels/axis_group.h"
#include "ops/comm/comm.h"

static tutti_status reduce_run(const tutti_kernel_call *call)
{
    tutti_axis_group_meeting meeting;
    const tutti_view *out = &call->outputs[0];
    int64_t count = tutti_view_count(out), bytes = count * (int64_t)tutti_dtype_size(out->dtype);
    int root = (int)tutti__call_int(call, "root");
    if (tutti__call_int(call, "size") == 1)
        return call->op->reference(call);
    TUTTI_TRY(tutti__axis_group_begin(call, &meeting));
    tutti__call_copy(call);
    tutti_status status = TUTTI_OK;
    if (count > 0)
        status = tutti__axis_group_reduce(
            meeting.axis_group, meeting.local, out->data, count, out->dtype,
            tutti__reduction_of(call->attrs, call->attr_count), root, &meeting.call);
    if (status == TUTTI_OK && bytes > 0 && meeting.rank != root)
        memset(out->data, 0, (size_t)bytes);
    return tutti__axis_group_done(call, &meeting, status, bytes);
}

const tutti_kernel tutti_kernel_reduce = {
    .name = "reduce.group",
    .version = 1,
    .op = "reduce",
    .target = "cpu",
    .isa = "base",
    .inplace = 1,
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = reduce_run,
};
