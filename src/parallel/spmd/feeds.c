/* feeds.c: nodes that are not simply cut: what is fed, groups, variables of one device, prints.
 */
#include <stdlib.h>
#include <string.h>

#include "parallel/spmd/rewrite.h"

bool tutti__spmd_shares_rows(const tutti_spmd *spmd)
{
    return spmd->layout->batch >= 0 && spmd->batch > 1 &&
           (tutti__spmd_batch_ranks(spmd) > 1 || spmd->shards > 0);
}

/* Processes. */
static bool has_others(const tutti_spmd_rewrite *rewrite)
{
    return rewrite->spmd->local < rewrite->spmd->replicas;
}

/* `own` holds the rows of the rank's process: the rank's part of them. */
static tutti_status take_rows(tutti_spmd_rewrite *rewrite, tutti_node *node, int output,
                              tutti_edge own, tutti_rewritten *mark)
{
    const tutti_spmd *spmd = rewrite->spmd;
    tutti_partition_spec rows_split = {0};
    if (!tutti__spmd_shares_rows(spmd) && !has_others(rewrite)) {
        tutti__spmd_made(mark, output, &mark->specs[output], own);
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti__reshard_slice(rewrite, (tutti_edge){node, (uint32_t)output},
                                   spmd->layout->batch, 0, true, own, &own));
    rows_split.along[spmd->layout->batch].kind = TUTTI_SPLIT;
    tutti__spmd_made(mark, output, &rows_split, own);
    if (tutti__spmd_shares_rows(spmd))
        return TUTTI_OK;
    /* One row cannot be shared: every rank works on it. */
    TUTTI_TRY(tutti__reshard_whole(rewrite, (tutti_edge){node, (uint32_t)output}, &own));
    tutti__spmd_made(mark, output, &mark->specs[output], own);
    return TUTTI_OK;
}

bool tutti__spmd_feeds_rows(const tutti_spmd *spmd, const tutti_node *parameter)
{
    return tutti__is_batch(parameter, 0) && spmd->batch > 0 && spmd->layout->batch >= 0 &&
           (tutti__spmd_batch_ranks(spmd) > 1 || spmd->shards > 0);
}

tutti_status tutti__spmd_take_parameter(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                        tutti_rewritten *mark)
{
    TUTTI_TRY(tutti__spmd_copy(rewrite, node, NULL, NULL, &mark->node));
    tutti_edge fed = {mark->node, 0};
    tutti__spmd_made(mark, 0, &(tutti_partition_spec){0}, fed);
    return tutti__spmd_feeds_rows(rewrite->spmd, node) ? take_rows(rewrite, node, 0, fed, mark)
                                                       : TUTTI_OK;
}

/* Takes values only to wait for them: in the form that they have. */
tutti_status tutti__spmd_take_group(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark)
{
    tutti_edge *inputs =
        tutti__arena_array(rewrite->scratch, (size_t)node->input_count + 1, sizeof *inputs);
    if (!inputs)
        return tutti__spmd_no_memory();
    for (int i = 0; i < node->input_count; i++)
        inputs[i] = tutti__placement_made(node->inputs[i]);
    return tutti__spmd_copy(rewrite, node, inputs, NULL, &mark->node);
}

bool tutti__spmd_is_group(const tutti_node *node)
{
    return tutti__is(node, "group") || (node->output_count == 0 && node->input_count == 0);
}

/* ---- queues ---- */

bool tutti__spmd_is_queue(const tutti_node *node)
{
    if (node->op->flags & TUTTI_OP_HANDLE)
        return !tutti__is(node, "variable");
    return (node->op->flags & TUTTI_OP_TAKES_HANDLE) && node->input_count > 0 &&
           tutti__spmd_is_queue(node->inputs[0].node);
}

bool tutti__takes_batch(const tutti_node *node)
{
    bool marked = false, known = true;
    if (!tutti__is(node, "dequeue_many") || tutti__int(node, "n") < 1)
        return false;
    for (int i = 0; i < node->output_count; i++) {
        marked = marked || tutti__is_batch(node, (uint32_t)i);
        known = known && tutti_type_is_static(&node->types[i]);
    }
    return marked && known;
}

static tutti_status queues_check(const tutti_spmd_rewrite *rewrite, const tutti_node *node)
{
    if (!has_others(rewrite) || strncmp(node->op->name, "dequeue", 7) != 0 ||
        tutti__takes_batch(node))
        return TUTTI_OK;
    return tutti_fail(
        TUTTI_UNSUPPORTED,
        "%s '%s': a queue is one process's own, and this job has several: mark what is taken out "
        "of it as rows of the batch, tutti_split_batch(tutti_dequeue_many(queue, batch)) of tuples "
        "of known shapes, or use a dataset",
        node->op->name, node->name);
}

/* Takes the rows of the process, and says as one more output whether they were there. */
static tutti_status add_dequeue(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                tutti_node **ret)
{
    const tutti_attr *types = tutti_attr_find(node->attrs, node->attr_count, "types");
    tutti_type *more =
        tutti__arena_array(rewrite->scratch, (size_t)node->output_count + 1, sizeof *more);
    tutti_edge queue;
    if (!more)
        return tutti__spmd_no_memory();
    memcpy(more, types->value.types, (size_t)node->output_count * sizeof *more);
    more[node->output_count] = tutti_type_make(TUTTI_F32, 0, NULL);
    tutti_attr attrs[] = {*types, TUTTI_INT("n", rewrite->spmd->batch)};
    attrs[0].value.types = more;
    attrs[0].count = node->output_count + 1;
    TUTTI_TRY(tutti__reshard_whole(rewrite, node->inputs[0], &queue));
    TUTTI_TRY(tutti__spmd_add(rewrite, node, "dequeue_own", 1, &queue, 2, attrs, ret));
    return tutti__spmd_copy_controls(rewrite, node, *ret);
}

/* The processes tell each other whether all have their rows: where one has not, the step ends on
 * all with OUT_OF_RANGE. As a sum it travels with the gradients; in deterministic mode, where those
 * are sums of shards, by itself. */
static tutti_status agree(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                          tutti_rewritten *mark)
{
    tutti_edge missing = {mark->node, (uint32_t)node->output_count};
    tutti_node *end;
    tutti_attr batch = TUTTI_INT("batch", rewrite->spmd->batch);
    TUTTI_TRY(tutti__reshard_reduce(rewrite, node, rewrite->spmd->layout->batch,
                                    rewrite->spmd->shards > 0 ? "max" : "sum", missing, &missing));
    TUTTI_TRY(tutti__spmd_add(rewrite, node, "need_rows", 1, &missing, 1, &batch, &end));
    return TUTTI_VEC_PUSH(&rewrite->to->targets, end) ? TUTTI_OK : tutti__spmd_no_memory();
}

static tutti_status take_whole(tutti_spmd_rewrite *rewrite, tutti_node *node, tutti_rewritten *mark)
{
    tutti_edge *inputs =
        tutti__arena_array(rewrite->scratch, (size_t)node->input_count + 1, sizeof *inputs);
    if (!inputs)
        return tutti__spmd_no_memory();
    for (int i = 0; i < node->input_count; i++)
        TUTTI_TRY(tutti__reshard_whole(rewrite, node->inputs[i], &inputs[i]));
    TUTTI_TRY(tutti__spmd_copy(rewrite, node, inputs, NULL, &mark->node));
    for (int i = 0; i < node->output_count; i++)
        tutti__spmd_made(mark, i, &(tutti_partition_spec){0},
                         (tutti_edge){mark->node, (uint32_t)i});
    return TUTTI_OK;
}

static tutti_status take_batch(tutti_spmd_rewrite *rewrite, tutti_node *node, tutti_rewritten *mark)
{
    if (has_others(rewrite))
        TUTTI_TRY(add_dequeue(rewrite, node, &mark->node));
    else
        TUTTI_TRY(take_whole(rewrite, node, mark));
    for (int i = 0; i < node->output_count; i++)
        TUTTI_TRY(take_rows(rewrite, node, i, (tutti_edge){mark->node, (uint32_t)i}, mark));
    return has_others(rewrite) ? agree(rewrite, node, mark) : TUTTI_OK;
}

tutti_status tutti__spmd_take_queue(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark)
{
    TUTTI_TRY(queues_check(rewrite, node));
    if (tutti__takes_batch(node) && rewrite->spmd->layout->batch >= 0)
        return take_batch(rewrite, node, mark);
    return take_whole(rewrite, node, mark);
}

void tutti__spmd_after_updates(const tutti_graph *graph, bool *ret)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        ret[n] = (node->op->flags & TUTTI_OP_UPDATES) != 0;
        for (int i = 0; i < node->input_count; i++)
            ret[n] = ret[n] || ret[node->inputs[i].node->id];
        for (int i = 0; i < node->control_count; i++)
            ret[n] = ret[n] || ret[node->controls[i]->id];
    }
}

static bool is_meeting(const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_COLLECTIVE) || tutti__is(node, "all_reduce_wait");
}

tutti_status tutti__spmd_end_last(tutti_graph *graph)
{
    bool ends = false;
    for (size_t n = 0; n < graph->nodes.count; n++)
        ends = ends || tutti__is(graph->nodes.data[n], "need_rows");
    if (!ends)
        return TUTTI_OK;
    bool *after = calloc(graph->nodes.count + 1, sizeof *after);
    if (!after)
        return tutti__spmd_no_memory();
    tutti__spmd_after_updates(graph, after);
    tutti_status status = TUTTI_OK;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *end = graph->nodes.data[n];
        for (size_t i = 0; tutti__is(end, "need_rows") && i < graph->nodes.count; i++)
            if (status == TUTTI_OK && !after[i] && is_meeting(graph->nodes.data[i]))
                status = tutti__node_after(end, graph->nodes.data[i]);
    }
    free(after);
    return status == TUTTI_OK ? tutti__graph_sort(graph) : status;
}
