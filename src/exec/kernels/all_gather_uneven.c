/* all_gather_uneven.c: the replicas' rows, joined along dimension "dim" in the order of replicas.
 */
#include <stdlib.h>

#include "exec/kernels/axis_group.h"
#include "exec/kernels/collective.h"

/* Blocks as they arrive, [replica][…], put where they belong along a dimension that is not the
 * first. */
static tutti_status put_in_place(const tutti_kernel_call *call, int dim, const int64_t *dims,
                                 char *blocks)
{
    const tutti_view *out = &call->outputs[0];
    tutti_tensor *whole, *block;
    int64_t at = 0, shape[TUTTI_MAX_RANK], rest = 1;
    TUTTI_TRY(tutti__borrow_output(call, &whole));
    for (int i = 0; i < out->rank; i++) {
        shape[i] = out->dims[i];
        rest *= i == dim ? 1 : out->dims[i];
    }
    int size = (int)tutti__call_int(call, "size");
    tutti_status status = TUTTI_OK;
    for (int r = 0; status == TUTTI_OK && r < size; r++) {
        shape[dim] = dims[r];
        status = tutti_tensor_wrap(out->dtype, out->rank, shape, blocks, NULL, NULL, &block);
        if (status != TUTTI_OK)
            break;
        status = tutti__copy_piece(block, dim, 0, dims[r], whole, dim, at);
        tutti_tensor_release(block);
        at += dims[r];
        blocks += (size_t)(dims[r] * rest) * tutti_dtype_size(out->dtype);
    }
    tutti_tensor_release(whole);
    return status;
}

static tutti_status all_gather_uneven_gather(const tutti_kernel_call *call,
                                             tutti_axis_group_meeting *meeting, int64_t *counts,
                                             const int64_t *dims, char *blocks)
{
    const tutti_view *out = &call->outputs[0];
    int dim = tutti__dim_attr(call, "dim", out->rank), size = (int)tutti__call_int(call, "size");
    int64_t rest = 1;
    for (int i = 0; i < out->rank; i++)
        rest *= i == dim ? 1 : out->dims[i];
    for (int r = 0; r < size; r++)
        counts[r] = dims[r] * rest;
    TUTTI_TRY(tutti__axis_group_all_gather(
        meeting->axis_group, meeting->local, call->inputs[0].data, counts,
        blocks ? blocks : out->data, out->dtype, &meeting->call));
    return blocks ? put_in_place(call, dim, dims, blocks) : TUTTI_OK;
}

/* Along some axes of the mesh, between devices of this process. */
static tutti_status gather_along(const tutti_kernel_call *call, const int64_t *dims)
{
    tutti_meeting meeting;
    tutti_tensor *whole = NULL;
    int64_t at = 0;
    int dim = tutti__dim_attr(call, "dim", call->outputs[0].rank);
    TUTTI_TRY(tutti__meet(call, &meeting));
    tutti_status status = tutti__borrow_output(call, &whole);
    for (int r = 0; status == TUTTI_OK && r < meeting.size; at += dims[r++])
        if (dims[r] > 0)
            status = tutti__copy_piece(meeting.all[r], dim, 0, dims[r], whole, dim, at);
    tutti_tensor_release(whole);
    tutti__meeting_end(&meeting);
    return status;
}

static tutti_status all_gather_uneven_run(const tutti_kernel_call *call)
{
    tutti_axis_group_meeting meeting;
    const int64_t *dims;
    int size = tutti_attr_ints(call->attrs, call->attr_count, "counts", &dims);
    const tutti_view *out = &call->outputs[0];
    size_t bytes = (size_t)tutti_view_count(out) * tutti_dtype_size(out->dtype);
    if (tutti__call_int(call, "size") == 1)
        return call->op->reference(call);
    if (!tutti__call_axis_group(call))
        return gather_along(call, dims);
    TUTTI_TRY(tutti__axis_group_begin(call, &meeting));
    bool first = true; /* nothing but ones before the dimension: blocks lie behind each other */
    for (int i = 0; i < tutti__dim_attr(call, "dim", out->rank); i++)
        first = first && out->dims[i] == 1;
    int64_t *counts = calloc((size_t)size, sizeof *counts);
    char *blocks = first ? NULL : malloc(bytes + 1);
    tutti_status status = !counts || (!first && !blocks)
                              ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a collective")
                              : all_gather_uneven_gather(call, &meeting, counts, dims, blocks);
    free(blocks);
    free(counts);
    return tutti__axis_group_done(call, &meeting, status, (int64_t)bytes);
}

const tutti_kernel tutti_kernel_all_gather_uneven = {
    .name = "all_gather_uneven.team",
    .version = 1,
    .op = "all_gather_uneven",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .run = all_gather_uneven_run,
};
