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

/* `own` holds this process's rows of the node's output: this replica's part of them. */
static tutti_status take_rows(tutti_spmd_rewrite *rewrite, tutti_node *node, int output,
                              tutti_edge own, tutti_rewritten *mark)
{
    const tutti_spmd *spmd = rewrite->spmd;
    const tutti_type *type = tutti__edge_type(own);
    tutti_partition_spec rows_split = {0};
    int64_t first, rows;
    if (!tutti__spmd_shares_rows(spmd) && !has_others(rewrite)) {
        tutti__spmd_made(mark, output, &mark->specs[output], own);
        return TUTTI_OK;
    }
    tutti__spmd_own_rows(spmd, spmd->batch, &first, &rows);
    if (spmd->local > 1) {
        int64_t begin[TUTTI_MAX_RANK] = {rewrite->first - first}, end[TUTTI_MAX_RANK];
        memcpy(end, type->dims, sizeof end);
        end[0] = begin[0] + rewrite->rows;
        tutti_attr attrs[] = {TUTTI_INTS("begin", type->rank, begin),
                              TUTTI_INTS("end", type->rank, end)};
        tutti_node *slice;
        TUTTI_TRY(tutti__spmd_add(rewrite, node, "slice", 1, &own, 2, attrs, &slice));
        tutti__spmd_claim_slice(slice, spmd->layout->batch, 0, 0);
        own = (tutti_edge){slice, 0};
    }
    rows_split.along[spmd->layout->batch].kind = TUTTI_SPLIT;
    tutti__spmd_made(mark, output, &rows_split, own);
    if (tutti__spmd_shares_rows(spmd))
        return TUTTI_OK;
    /* One row cannot be shared: every replica works on it. */
    TUTTI_TRY(tutti__reshard_whole(rewrite, (tutti_edge){node, (uint32_t)output}, &own));
    tutti__spmd_made(mark, output, &mark->specs[output], own);
    return TUTTI_OK;
}

tutti_status tutti__spmd_take_parameter(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                        tutti_rewritten *mark)
{
    const tutti_spmd *spmd = rewrite->spmd;
    tutti_node *fed;
    TUTTI_TRY(tutti__spmd_copy(rewrite, node, NULL, NULL, &fed));
    fed->device = "";
    mark->node = fed;
    tutti__spmd_made(mark, 0, &(tutti_partition_spec){0}, (tutti_edge){fed, 0});
    if (!tutti__is_batch(node, 0) || spmd->batch <= 0 || spmd->layout->batch < 0 ||
        (tutti__spmd_batch_ranks(spmd) == 1 && spmd->shards == 0))
        return TUTTI_OK;
    int64_t first, rows;
    tutti__spmd_own_rows(spmd, spmd->batch, &first, &rows);
    int64_t *dims = (void *)tutti__arena_bytes(&rewrite->to->arena, fed->types[0].dims,
                                               sizeof fed->types[0].dims);
    if (!dims)
        return tutti__spmd_no_memory();
    fed->types[0].dims[0] = dims[0] = rows;
    tutti__spmd_attr(fed, "dims")->value.ints = dims;
    return take_rows(rewrite, node, 0, (tutti_edge){fed, 0}, mark);
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

/* The first replica's node stands for this one's. */
static void follow_first(const tutti_node *node, tutti_rewritten *mark)
{
    mark->node = mark->first_node;
    for (int i = 0; i < node->output_count; i++) {
        const tutti_placement *made = &mark->first_outputs[i].placements[0];
        tutti__spmd_made(mark, i, &made->spec, made->edge);
    }
}

/* Central storage: variables, their reads and updates are those of the first replica. The others
 * bring what the updates take. False: the node is none of these. */
bool tutti__spmd_take_central(tutti_spmd_rewrite *rewrite, tutti_node *node, tutti_rewritten *mark,
                              tutti_status *ret_status)
{
    *ret_status = TUTTI_OK;
    if (!mark->first_outputs || !(node->op->flags & (TUTTI_OP_HANDLE | TUTTI_OP_TAKES_HANDLE)))
        return false;
    for (int i = 0; (node->op->flags & TUTTI_OP_UPDATES) && i < node->input_count; i++) {
        tutti_edge edge;
        if (tutti__edge_type(node->inputs[i])->handle)
            continue;
        *ret_status = tutti__reshard_whole(rewrite, node->inputs[i], &edge);
        if (*ret_status == TUTTI_OK && !TUTTI_VEC_PUSH(&rewrite->to->targets, edge.node))
            *ret_status = tutti__spmd_no_memory();
        if (*ret_status != TUTTI_OK)
            return true;
    }
    follow_first(node, mark);
    return true;
}

/* Printed once in a job; the others bring the value. */
tutti_status tutti__spmd_take_print(tutti_spmd_rewrite *rewrite, tutti_node *node,
                                    tutti_rewritten *mark)
{
    for (int i = 0; i < node->input_count; i++) {
        tutti_edge edge;
        TUTTI_TRY(tutti__reshard_whole(rewrite, node->inputs[i], &edge));
        if (!TUTTI_VEC_PUSH(&rewrite->to->targets, edge.node))
            return tutti__spmd_no_memory();
        if (i < node->output_count)
            tutti__spmd_made(mark, i, &(tutti_partition_spec){0}, edge);
        mark->node = edge.node;
    }
    return TUTTI_OK;
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

/* The first replica's node; others may have to meet to give what goes in whole. */
static tutti_status follow_queue(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                 tutti_rewritten *mark)
{
    for (int i = 0; i < node->input_count; i++) {
        tutti_edge edge;
        if (tutti__edge_type(node->inputs[i])->handle)
            continue;
        TUTTI_TRY(tutti__reshard_whole(rewrite, node->inputs[i], &edge));
        if (!TUTTI_VEC_PUSH(&rewrite->to->targets, edge.node))
            return tutti__spmd_no_memory();
    }
    follow_first(node, mark);
    return TUTTI_OK;
}

/* Takes this process's rows, and says as one more output whether they were there. */
static tutti_status add_dequeue(tutti_spmd_rewrite *rewrite, const tutti_node *node,
                                tutti_node **ret)
{
    const tutti_attr *types = tutti_attr_find(node->attrs, node->attr_count, "types");
    tutti_type *more =
        tutti__arena_array(rewrite->scratch, (size_t)node->output_count + 1, sizeof *more);
    int64_t first, rows;
    tutti_edge queue;
    if (!more)
        return tutti__spmd_no_memory();
    memcpy(more, types->value.types, (size_t)node->output_count * sizeof *more);
    more[node->output_count] = tutti_type_make(TUTTI_F32, 0, NULL);
    tutti__spmd_own_rows(rewrite->spmd, rewrite->spmd->batch, &first, &rows);
    tutti_attr attrs[] = {*types, TUTTI_INT("n", rows)};
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
    end = missing.node;
    if (!mark->first_outputs) {
        TUTTI_TRY(tutti__spmd_add(rewrite, node, "need_rows", 1, &missing, 1, &batch, &end));
        end->device = ""; /* not every device can fail */
    }
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
    if (mark->first_outputs)
        mark->node = mark->first_node;
    else if (has_others(rewrite))
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
    if (mark->first_outputs)
        return follow_queue(rewrite, node, mark);
    TUTTI_TRY(take_whole(rewrite, node, mark));
    if (node->op->flags & TUTTI_OP_HANDLE) /* where its device has no queues, the host's does */
        mark->node->device = "";
    return TUTTI_OK;
}

/* Whether a node follows an update: what does runs after the step's commit, which need_rows comes
 * before. */
static void find_late(const tutti_graph *graph, bool *late)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        late[n] = (node->op->flags & TUTTI_OP_UPDATES) != 0;
        for (int i = 0; i < node->input_count; i++)
            late[n] = late[n] || late[node->inputs[i].node->id];
        for (int i = 0; i < node->control_count; i++)
            late[n] = late[n] || late[node->controls[i]->id];
    }
}

tutti_status tutti__spmd_end_last(tutti_graph *graph)
{
    bool ends = false;
    for (size_t n = 0; n < graph->nodes.count; n++)
        ends = ends || tutti__is(graph->nodes.data[n], "need_rows");
    if (!ends)
        return TUTTI_OK;
    bool *late = calloc(graph->nodes.count + 1, sizeof *late);
    if (!late)
        return tutti__spmd_no_memory();
    find_late(graph, late);
    tutti_status status = TUTTI_OK;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *end = graph->nodes.data[n];
        for (size_t i = 0; tutti__is(end, "need_rows") && i < graph->nodes.count; i++)
            if (status == TUTTI_OK && !late[i] &&
                (graph->nodes.data[i]->op->flags & TUTTI_OP_COLLECTIVE))
                status = tutti__node_after(end, graph->nodes.data[i]);
    }
    free(late);
    return status == TUTTI_OK ? tutti__graph_sort(graph) : status;
}
