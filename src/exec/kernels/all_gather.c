/* all_gather.c: everybody gets all inputs, joined along dimension "dim" in the order of ranks; of
 * one size, or of sizes "counts". */
#include <string.h>

#include "exec/kernels/axis_group.h"

/* Blocks as they arrive, [rank][…], put where they belong along a dimension that is not the first.
 */
static void put_in_place(char *out, const char *blocks, size_t outer, size_t inner, int size,
                         const int64_t *sizes, int64_t total)
{
    for (int r = 0; r < size; r++) {
        size_t bytes = (size_t)sizes[r] * inner;
        for (size_t o = 0; bytes > 0 && o < outer; o++)
            memcpy(out + o * (size_t)total * inner, blocks + o * bytes, bytes);
        blocks += outer * bytes;
        out += bytes;
    }
}

static tutti_status all_gather_run(const tutti_kernel_call *call)
{
    tutti_axis_group_meeting meeting;
    const tutti_view *out = &call->outputs[0];
    const int64_t *counts;
    bool uneven = tutti_attr_ints(call->attrs, call->attr_count, "counts", &counts) > 0;
    int dim, size = (int)tutti__call_int(call, "size");
    size_t inner, outer = tutti__blocks_of(call, "dim", out, &dim, &inner);
    if (size == 1)
        return call->op->reference(call);
    TUTTI_TRY(tutti__axis_group_begin(call, &meeting));
    int64_t *sizes = call->workspace,
            *elements = sizes + size; /* along the dimension; of a block */
    for (int r = 0; r < size; r++) {
        sizes[r] = uneven ? counts[r] : call->inputs[0].dims[dim];
        elements[r] = sizes[r] * (int64_t)outer * (int64_t)(inner / tutti_dtype_size(out->dtype));
    }
    char *blocks = outer == 1 ? out->data : (char *)(elements + size);
    size_t bytes = (size_t)tutti_view_count(out) * tutti_dtype_size(out->dtype);
    tutti_status status = TUTTI_OK;
    if (bytes > 0)
        status =
            tutti__axis_group_all_gather(meeting.axis_group, meeting.local, call->inputs[0].data,
                                         elements, blocks, out->dtype, &meeting.call);
    if (status == TUTTI_OK && outer > 1)
        put_in_place(out->data, blocks, outer, inner, size, sizes, out->dims[dim]);
    return tutti__axis_group_done(call, &meeting, status, (int64_t)bytes);
}

static size_t all_gather_workspace(const tutti_kernel_query *query)
{
    int64_t size = tutti_attr_int(query->node.attrs, query->node.attr_count, "size");
    return tutti__blocks_workspace(query) + 2 * (size_t)size * sizeof(int64_t);
}

const tutti_kernel tutti_kernel_all_gather = {
    .name = "all_gather.group",
    .version = 1,
    .op = "all_gather",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .workspace = all_gather_workspace,
    .run = all_gather_run,
};
