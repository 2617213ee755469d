/* all_reduce_shards.c: nodes of the tree over a batch's shards, of all replicas, folded. */
#include <string.h>

#include "exec/kernels/axis_group.h"

static size_t input_bytes(const tutti_kernel_call *call, int i)
{
    return (size_t)tutti_view_count(&call->inputs[i]) * tutti_dtype_size(call->inputs[i].dtype);
}

/* Room for all blocks side by side: [blocks][everything]. */
static size_t all_reduce_shards_workspace(const tutti_kernel_query *query)
{
    size_t bytes = 64;
    for (int i = 0; i < query->node.input_count; i++) {
        const tutti_type *type = &query->node.inputs[i];
        bytes += (size_t)tutti_type_count(type) * tutti_dtype_size(type->dtype);
    }
    return bytes;
}

static tutti_status all_reduce_shards_run(const tutti_kernel_call *call)
{
    tutti_axis_group_meeting meeting;
    int64_t blocks = tutti__call_int(call, "blocks");
    if (tutti__call_int(call, "size") == 1)
        return call->op->reference(call);
    TUTTI_TRY(tutti__axis_group_begin(call, &meeting));
    size_t element = tutti_dtype_size(call->inputs[0].dtype), all = 0, at = 0;
    for (int i = 0; i < call->input_count; i++)
        all += input_bytes(call, i) / (size_t)blocks;
    char *memory = call->workspace;
    for (int i = 0; i < call->input_count; i++) {
        size_t bytes = input_bytes(call, i) / (size_t)blocks;
        for (int64_t b = 0; b < blocks && bytes > 0; b++)
            memcpy(memory + (size_t)b * all + at, (char *)call->inputs[i].data + (size_t)b * bytes,
                   bytes);
        at += bytes;
    }
    meeting.call.shards = (int)tutti__call_int(call, "shards");
    tutti_comm_piece piece = {memory, (int64_t)(all / element)};
    tutti_status status = TUTTI_OK;
    if (all > 0)
        status = tutti__axis_group_all_reduce(meeting.axis_group, meeting.local, 1, &piece,
                                              call->inputs[0].dtype, TUTTI_SUM, &meeting.call);
    at = 0;
    for (int i = 0; i < call->output_count; i++) {
        size_t bytes = input_bytes(call, i) / (size_t)blocks;
        if (bytes > 0)
            memcpy(call->outputs[i].data, memory + at, bytes);
        at += bytes;
    }
    return tutti__axis_group_done(call, &meeting, status, (int64_t)all);
}

const tutti_kernel tutti_kernel_all_reduce_shards = {
    .name = "all_reduce_shards.group",
    .version = 1,
    .op = "all_reduce_shards",
    .target = "cpu",
    .isa = "base",
    .flags = TUTTI_KERNEL_HOST | TUTTI_KERNEL_ROW_INVARIANT,
    .score = tutti__host_score,
    .workspace = all_reduce_shards_workspace,
    .run = all_reduce_shards_run,
};
