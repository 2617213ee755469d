/* spmd.c: the rows of ranks; the text of a job for all of them. */
#include "parallel/spmd/spmd.h"

#include <stdlib.h>
#include <string.h>

#include "parallel/spmd/rewrite.h"

int tutti__spmd_batch_ranks(const tutti_spmd *spmd)
{
    int batch = spmd->layout->batch;
    return batch < 0 ? 1 : spmd->layout->axes[batch].size;
}

int tutti__spmd_batch_rank(const tutti_spmd *spmd, int replica)
{
    int batch = spmd->layout->batch;
    return batch < 0 ? 0 : tutti__layout_rank(spmd->layout, batch, replica);
}

int tutti__spmd_shards(const tutti_spmd *spmd, int replica, int *ret_first)
{
    int64_t rank = tutti__spmd_batch_rank(spmd, replica), ranks = tutti__spmd_batch_ranks(spmd);
    int64_t first = rank * spmd->shards / ranks, end = (rank + 1) * spmd->shards / ranks;
    *ret_first = (int)first;
    return (int)(end - first);
}

/* The same where each process says how many rows it has. */
static int64_t bound_of_counts(const tutti_spmd *spmd, int rank)
{
    int64_t first = 0;
    int process = rank / spmd->local, own = rank % spmd->local;
    for (int i = 0; i < process; i++)
        first += spmd->counts[i];
    if (own > 0)
        first += (spmd->counts[process] * own + spmd->local - 1) / spmd->local;
    return first;
}

/* Where the rows of a rank along the batch's axes begin. */
static int64_t bound(const tutti_spmd *spmd, int64_t batch, int rank)
{
    int ranks = tutti__spmd_batch_ranks(spmd);
    if (spmd->counts)
        return bound_of_counts(spmd, rank);
    if (spmd->shards > 0)
        return tutti__shard_bound(batch, spmd->shards, (int)((int64_t)rank * spmd->shards / ranks));
    return (batch * rank + ranks - 1) / ranks;
}

void tutti__spmd_rank_rows(const tutti_spmd *spmd, int64_t batch, int rank, int64_t *ret_first,
                           int64_t *ret_rows)
{
    *ret_first = bound(spmd, batch, rank);
    *ret_rows = bound(spmd, batch, rank + 1) - *ret_first;
}

void tutti__spmd_rows(const tutti_spmd *spmd, int64_t batch, int replica, int64_t *ret_first,
                      int64_t *ret_rows)
{
    tutti__spmd_rank_rows(spmd, batch, tutti__spmd_batch_rank(spmd, replica), ret_first, ret_rows);
}

void tutti__spmd_own_rows(const tutti_spmd *spmd, int64_t batch, int64_t *ret_first,
                          int64_t *ret_rows)
{
    int low = tutti__spmd_batch_rank(spmd, spmd->first), high = low;
    for (int i = 1; i < spmd->local; i++) {
        int rank = tutti__spmd_batch_rank(spmd, spmd->first + i);
        low = rank < low ? rank : low;
        high = rank > high ? rank : high;
    }
    *ret_first = bound(spmd, batch, low);
    *ret_rows = bound(spmd, batch, high + 1) - *ret_first;
}

bool tutti__is_batch(const tutti_node *node, uint32_t output)
{
    const tutti_sharding *sharding = node->shardings ? node->shardings[output] : NULL;
    for (int i = 0; sharding && i < sharding->count; i++)
        if (sharding->shards[i].kind == TUTTI_SPLIT && sharding->shards[i].dimension == 0 &&
            strcmp(sharding->shards[i].axis, TUTTI_BATCH_AXIS) == 0)
            return true;
    return false;
}

tutti_status tutti__spmd_batch(const tutti_graph *job, int64_t *batch)
{
    for (size_t n = 0; n < job->nodes.count; n++) {
        const tutti_node *node = job->nodes.data[n];
        if (!tutti__takes_batch(node))
            continue;
        int64_t rows = tutti__int(node, "n");
        if (*batch > 0 && rows != *batch)
            return tutti_fail(TUTTI_INVALID,
                              "%s '%s' takes %lld rows as those of the batch, which has %lld in "
                              "this run",
                              node->op->name, node->name, (long long)rows, (long long)*batch);
        *batch = rows;
    }
    return TUTTI_OK;
}

static tutti_status write_text(tutti_spmd_rewrite *rewrite, size_t node_count)
{
    TUTTI_TRY(tutti__spmd_nodes(rewrite, 0, node_count));
    for (size_t i = 0; i < rewrite->from->results.count; i++) {
        tutti_edge edge;
        TUTTI_TRY(tutti__reshard_whole(rewrite, rewrite->from->results.data[i], &edge));
        TUTTI_TRY(tutti__graph_result(rewrite->to, edge));
    }
    for (size_t i = 0; i < rewrite->from->targets.count; i++) {
        const tutti_rewritten *mark = tutti__rewritten(rewrite->from->targets.data[i]);
        if (mark->node && !TUTTI_VEC_PUSH(&rewrite->to->targets, mark->node))
            return tutti__spmd_no_memory();
    }
    return tutti__graph_prune(rewrite->to);
}

/* Notes of what goes into sums whether a shape before it depends on data. */
static void note_by_data(const tutti_graph *text, bool *by_data)
{
    for (size_t n = 0; n < text->nodes.count; n++) {
        const tutti_node *node = text->nodes.data[n];
        by_data[n] = false;
        for (int i = 0; i < node->output_count; i++)
            by_data[n] = by_data[n] || tutti__type_by_data(&node->types[i]);
        for (int i = 0; i < node->input_count; i++)
            by_data[n] = by_data[n] || by_data[node->inputs[i].node->id];
        if (tutti__is(node, "first_rank_only"))
            ((tutti_claim *)node->scratch)->by_data = by_data[n];
    }
}

/* Each collective waits for the one before it, so that no pass can turn two round on one rank only.
 * Those after an update come last. */
static tutti_status chain_collectives(tutti_graph *text, bool *after)
{
    tutti_node *last = NULL;
    tutti__spmd_after_updates(text, after);
    for (int late = 0; late < 2; late++)
        for (size_t n = 0; n < text->nodes.count; n++) {
            tutti_node *node = text->nodes.data[n];
            if (!(node->op->flags & TUTTI_OP_COLLECTIVE) || after[n] != (late > 0))
                continue;
            if (last)
                TUTTI_TRY(tutti__node_after(node, last));
            last = node;
        }
    return tutti__graph_sort(text);
}

static tutti_status finish_text(tutti_graph *text, const tutti_spmd *spmd)
{
    if (spmd->bucket_bytes > 0)
        TUTTI_TRY(tutti__spmd_buckets(text, spmd));
    bool *notes = calloc(text->nodes.count + 1, sizeof *notes);
    if (!notes)
        return tutti__spmd_no_memory();
    note_by_data(text, notes);
    tutti_status status = chain_collectives(text, notes);
    free(notes);
    return status;
}

tutti_status tutti__spmd_text(tutti_graph *job, const tutti_spmd *spmd, tutti_arena *scratch,
                              tutti_graph **ret)
{
    tutti_graph *to;
    TUTTI_TRY(tutti_graph_create(&to));
    to->trace = true;
    size_t node_count = job->nodes.count;
    tutti_spmd_rewrite rewrite = {.spmd = spmd, .scratch = scratch, .from = job, .to = to};
    tutti_status status = tutti__spmd_propagate(job, spmd, scratch);
    if (status == TUTTI_OK)
        status = write_text(&rewrite, node_count);
    if (status == TUTTI_OK)
        status = finish_text(to, spmd);
    if (status == TUTTI_OK)
        *ret = to;
    else
        tutti_graph_destroy(to);
    return status;
}

tutti_status tutti__spmd_rewrite(tutti_graph *job, const tutti_spmd *spmd, tutti_graph **ret)
{
    tutti_arena scratch = {0};
    tutti_graph *text = NULL, *to = NULL;
    tutti_status status = tutti__spmd_text(job, spmd, &scratch, &text);
    if (status == TUTTI_OK)
        status = tutti__spmd_verify(text, spmd);
    if (status == TUTTI_OK)
        status = tutti__spmd_specialize(text, spmd, &scratch, &to);
    if (status == TUTTI_OK)
        status = tutti__spmd_verify_ranks(to, text, spmd);
    for (size_t n = 0; to && n < to->nodes.count; n++)
        to->nodes.data[n]->scratch = NULL;
    tutti_graph_destroy(text);
    tutti__arena_free(&scratch);
    if (status == TUTTI_OK)
        *ret = to;
    else
        tutti_graph_destroy(to);
    return status;
}

/* ---- which variable a gradient is for ---- */

const char *tutti__spmd_variable_name(const tutti_node *variable)
{
    const char *of = tutti__str(variable, "slot_of"), *name = tutti__str(variable, "shared_name");
    return of[0] ? of : name[0] ? name : variable->name;
}

/* The variable that an update writes, or a slot of it; NULL: none. */
static const tutti_node *written_by(const tutti_node *update)
{
    for (int i = 0; i < update->input_count; i++)
        if (tutti__is(update->inputs[i].node, "variable"))
            return update->inputs[i].node;
    return NULL;
}

static int nearest_input(const tutti_node *node, const int *steps)
{
    int least = 0;
    for (int i = 0; i < node->input_count; i++) {
        int behind = steps[node->inputs[i].node->id];
        if (behind > 0 && (least == 0 || behind < least))
            least = behind;
    }
    return least;
}

tutti_status tutti__spmd_updated(const tutti_graph *graph, const tutti_node *gradient,
                                 const tutti_node **ret)
{
    int *steps = calloc(graph->nodes.count + 1, sizeof *steps); /* behind it, from 1; 0: not */
    int least = 0;
    if (!steps)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to join gradients");
    *ret = NULL;
    steps[gradient->id] = 1;
    for (size_t n = gradient->id + 1; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        int before = node->dead ? 0 : nearest_input(node, steps);
        if (before == 0)
            continue;
        steps[n] = before + 1;
        const tutti_node *variable = node->op->flags & TUTTI_OP_UPDATES ? written_by(node) : NULL;
        if (variable && (least == 0 || steps[n] < least)) {
            *ret = variable;
            least = steps[n];
        }
    }
    free(steps);
    return TUTTI_OK;
}
