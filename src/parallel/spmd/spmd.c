/* spmd.c: the rows of replicas, and the walk over a job for each of them. */
#include "parallel/spmd/spmd.h"

#include <stdlib.h>
#include <string.h>

#include "parallel/spmd/rewrite.h"

int tutti__spmd_shards(const tutti_spmd *spmd, int r, int *ret_first)
{
    int64_t first = (int64_t)r * spmd->shards / spmd->replicas;
    int64_t end = (int64_t)(r + 1) * spmd->shards / spmd->replicas;
    *ret_first = (int)first;
    return (int)(end - first);
}

/* The same where each process says how many rows it has. */
static int64_t bound_of_counts(const tutti_spmd *spmd, int r)
{
    int64_t first = 0;
    int process = r / spmd->local, own = r % spmd->local;
    for (int i = 0; i < process; i++)
        first += spmd->counts[i];
    if (own > 0)
        first += (spmd->counts[process] * own + spmd->local - 1) / spmd->local;
    return first;
}

/* Where the rows of replica r begin. */
static int64_t bound(const tutti_spmd *spmd, int64_t batch, int r)
{
    if (spmd->counts)
        return bound_of_counts(spmd, r);
    if (spmd->shards > 0)
        return tutti__shard_bound(batch, spmd->shards,
                                  (int)((int64_t)r * spmd->shards / spmd->replicas));
    return (batch * r + spmd->replicas - 1) / spmd->replicas;
}

void tutti__spmd_rows(const tutti_spmd *spmd, int64_t batch, int r, int64_t *ret_first,
                      int64_t *ret_rows)
{
    *ret_first = bound(spmd, batch, r);
    *ret_rows = bound(spmd, batch, r + 1) - *ret_first;
}

void tutti__spmd_own_rows(const tutti_spmd *spmd, int64_t batch, int64_t *ret_first,
                          int64_t *ret_rows)
{
    *ret_first = bound(spmd, batch, spmd->first);
    *ret_rows = bound(spmd, batch, spmd->first + spmd->local) - *ret_first;
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

/* Results come from the first replica; the others make them too, because they may have to meet. In
 * deterministic mode they are results of theirs as well, behind those that are asked for: passes
 * leave targets as they are, and what is fused or lowered on one replica only has other bits. */
static tutti_status spmd_finish(tutti_spmd_rewrite *rewrite, bool first)
{
    bool results = first || rewrite->spmd->shards > 0;
    for (size_t i = 0; i < rewrite->from->results.count; i++) {
        tutti_edge edge;
        TUTTI_TRY(tutti__placement_as(rewrite, rewrite->from->results.data[i],
                                      TUTTI_PLACEMENT_REPLICATED, 0, &edge));
        if (results)
            TUTTI_TRY(tutti__graph_result(rewrite->to, edge));
        else if (!TUTTI_VEC_PUSH(&rewrite->to->targets, edge.node))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory to spread a job");
    }
    for (size_t i = 0; i < rewrite->from->targets.count; i++) {
        const tutti_rewritten *mark = rewrite->from->targets.data[i]->scratch;
        if (mark->node && !TUTTI_VEC_PUSH(&rewrite->to->targets, mark->node))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory to spread a job");
    }
    return TUTTI_OK;
}

static tutti_status walk_replica(tutti_graph *job, size_t node_count, const tutti_spmd *spmd,
                                 int local, tutti_arena *scratch, tutti_graph *to)
{
    tutti_spmd_rewrite rewrite = {.spmd = spmd,
                                  .scratch = scratch,
                                  .from = job,
                                  .to = to,
                                  .replica = spmd->first + local,
                                  .device = spmd->devices[local]};
    tutti__spmd_rows(spmd, spmd->batch, rewrite.replica, &rewrite.first, &rewrite.rows);
    tutti_status status = TUTTI_OK;
    for (size_t n = 0; status == TUTTI_OK && n < node_count; n++)
        status = tutti__spmd_node(&rewrite, job->nodes.data[n]);
    if (status == TUTTI_OK)
        status = spmd_finish(&rewrite, local == 0);
    return status;
}

/* The replicas' nodes in turn, so that devices come to what they meet in at the same time: else one
 * would wait for another that has its other work still before it. */
static tutti_status take_turns(tutti_graph *graph, const tutti_spmd *spmd)
{
    size_t count = graph->nodes.count, placed = 0;
    size_t *next = calloc((size_t)spmd->local + 1, sizeof *next);
    tutti_node **order = calloc(count + 1, sizeof *order);
    if (!next || !order) {
        free(next);
        free(order);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to spread a job");
    }
    for (int list = 0, ended = 0; placed < count && ended <= spmd->local;
         list = (list + 1) % (spmd->local + 1)) {
        /* List 0 holds what stands on no replica's device: all of it comes first. */
        const char *device = list > 0 ? spmd->devices[list - 1] : NULL;
        size_t before = placed, *at = &next[list];
        for (; *at < count && (placed == before || !device); ++*at) {
            tutti_node *node = graph->nodes.data[*at];
            bool own = false;
            for (int i = 0; !device && i < spmd->local; i++)
                own = own || strcmp(node->device, spmd->devices[i]) == 0;
            if (device ? strcmp(node->device, device) == 0 : !own)
                order[placed++] = node;
        }
        ended = placed == before ? ended + 1 : 0;
    }
    for (size_t i = 0; placed == count && i < count; i++) {
        graph->nodes.data[i] = order[i];
        order[i]->id = (uint32_t)i;
    }
    free(next);
    free(order);
    return tutti__graph_sort(graph);
}

tutti_status tutti__spmd_rewrite(tutti_graph *job, const tutti_spmd *spmd, tutti_graph **ret)
{
    tutti_graph *to;
    TUTTI_TRY(tutti_graph_create(&to));
    to->trace = true;
    tutti_status status = TUTTI_OK;
    size_t node_count = job->nodes.count;
    tutti_arena scratch = {0};
    for (size_t n = 0; n < node_count; n++)
        job->nodes.data[n]->scratch = NULL;
    for (int i = 0; status == TUTTI_OK && i < spmd->local; i++)
        status = walk_replica(job, node_count, spmd, i, &scratch, to);
    tutti__arena_free(&scratch);
    if (status == TUTTI_OK)
        status = tutti__graph_prune(to);
    if (status == TUTTI_OK && spmd->local < spmd->replicas)
        status = tutti__spmd_end_last(to);
    if (status == TUTTI_OK && spmd->bucket_bytes > 0)
        status = tutti__spmd_buckets(to, spmd);
    if (status == TUTTI_OK && spmd->local > 1)
        status = take_turns(to, spmd);
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
