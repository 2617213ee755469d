/* all_to_all.c: rank i gets piece i along "split_dim" of every input, joined along "concat_dim". */
#include "exec/kernels/axis_group.h"

static tutti_status all_to_all_run(const tutti_kernel_call *call)
{
    tutti_axis_group_meeting meeting;
    const tutti_view *in = &call->inputs[0], *out = &call->outputs[0];
    if (tutti__call_int(call, "size") == 1)
        return call->op->reference(call);
    TUTTI_TRY(tutti__axis_group_begin(call, &meeting));
    size_t bytes = (size_t)tutti_view_count(in) * tutti_dtype_size(in->dtype), inner;
    size_t parts = (size_t)meeting.size;
    int dim;
    /* A block is an input's piece: [outer of the split][…]; then [outer of the join][…]. */
    size_t outer = tutti__blocks_of(call, "split_dim", in, &dim, &inner);
    size_t run = (size_t)in->dims[dim] / parts * inner;
    char *given = outer == 1 ? in->data : call->workspace;
    if (outer > 1)
        tutti__turn_blocks(in->data, given, outer, parts, run, false);
    size_t join = tutti__blocks_of(call, "concat_dim", out, &dim, &inner);
    size_t length = (size_t)out->dims[dim] / parts * inner;
    char *got = join == 1 ? out->data : (char *)call->workspace + bytes;
    tutti_status status = TUTTI_OK;
    if (bytes > 0)
        status = tutti__axis_group_all_to_all(
            meeting.axis_group, meeting.local, given, got,
            (int64_t)(bytes / parts / tutti_dtype_size(in->dtype)), in->dtype, &meeting.call);
    if (status == TUTTI_OK && join > 1)
        tutti__turn_blocks(got, out->data, join, parts, length, true);
    return tutti__axis_group_done(call, &meeting, status, (int64_t)bytes);
}

const tutti_kernel tutti_kernel_all_to_all = {
    .name = "all_to_all.group",
    .version = 1,
    .op = "all_to_all",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .workspace = tutti__blocks_workspace,
    .run = all_to_all_run,
};
