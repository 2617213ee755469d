/* reduce_scatter.c: rank i gets piece i along dimension "dim" of the reduction of all inputs. */
#include "exec/kernels/axis_group.h"
#include "ops/comm/comm.h"

static tutti_status reduce_scatter_run(const tutti_kernel_call *call)
{
    tutti_axis_group_meeting meeting;
    const tutti_view *in = &call->inputs[0];
    int dim;
    size_t inner, outer = tutti__blocks_of(call, "dim", in, &dim, &inner);
    int64_t count = tutti_view_count(&call->outputs[0]);
    if (tutti__call_int(call, "size") == 1)
        return call->op->reference(call);
    TUTTI_TRY(tutti__axis_group_begin(call, &meeting));
    void *blocks = outer == 1 ? in->data : call->workspace;
    if (outer > 1)
        tutti__turn_blocks(in->data, blocks, outer, (size_t)meeting.size,
                           (size_t)in->dims[dim] / (size_t)meeting.size * inner, false);
    tutti_status status = TUTTI_OK;
    if (count > 0)
        status = tutti__axis_group_reduce_scatter(
            meeting.axis_group, meeting.local, blocks, call->outputs[0].data, count, in->dtype,
            tutti__reduction_of(call->attrs, call->attr_count), &meeting.call);
    return tutti__axis_group_done(call, &meeting, status,
                                  tutti_view_count(in) * (int64_t)tutti_dtype_size(in->dtype));
}

const tutti_kernel tutti_kernel_reduce_scatter = {
    .name = "reduce_scatter.group",
    .version = 1,
    .op = "reduce_scatter",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .workspace = tutti__blocks_workspace,
    .run = reduce_scatter_run,
};
