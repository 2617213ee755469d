/* spread.c: the rows of replicas, and the walk over a job for each of them. */
#include "dist/spread.h"

#include <stdlib.h>
#include <string.h>

#include "dist/walk.h"

int tutti__spread_shards(const tutti_spread *spread, int r, int *ret_first)
{
    int64_t first = (int64_t)r * spread->shards / spread->replicas;
    int64_t end = (int64_t)(r + 1) * spread->shards / spread->replicas;
    *ret_first = (int)first;
    return (int)(end - first);
}

/* The same where each process says how many rows it has. */
static int64_t bound_of_counts(const tutti_spread *spread, int r)
{
    int64_t first = 0;
    int process = r / spread->local, own = r % spread->local;
    for (int i = 0; i < process; i++)
        first += spread->counts[i];
    if (own > 0)
        first += (spread->counts[process] * own + spread->local - 1) / spread->local;
    return first;
}

/* Where the rows of replica r begin. */
static int64_t bound(const tutti_spread *spread, int64_t batch, int r)
{
    if (spread->counts)
        return bound_of_counts(spread, r);
    if (spread->shards > 0)
        return tutti__shard_bound(batch, spread->shards,
                                  (int)((int64_t)r * spread->shards / spread->replicas));
    return (batch * r + spread->replicas - 1) / spread->replicas;
}

void tutti__spread_rows(const tutti_spread *spread, int64_t batch, int r, int64_t *ret_first,
                        int64_t *ret_rows)
{
    *ret_first = bound(spread, batch, r);
    *ret_rows = bound(spread, batch, r + 1) - *ret_first;
}

void tutti__spread_own(const tutti_spread *spread, int64_t batch, int64_t *ret_first,
                       int64_t *ret_rows)
{
    *ret_first = bound(spread, batch, spread->first);
    *ret_rows = bound(spread, batch, spread->first + spread->local) - *ret_first;
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

tutti_status tutti__spread_batch(const tutti_graph *job, int64_t *batch)
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
static tutti_status finish(tutti_walk *walk, bool first)
{
    bool results = first || walk->spread->shards > 0;
    for (size_t i = 0; i < walk->from->results.count; i++) {
        tutti_edge edge;
        TUTTI_TRY(tutti__form_as(walk, walk->from->results.data[i], TUTTI_FORM_WHOLE, 0, &edge));
        if (results)
            TUTTI_TRY(tutti__graph_result(walk->to, edge));
        else if (!TUTTI_VEC_PUSH(&walk->to->targets, edge.node))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory to spread a job");
    }
    for (size_t i = 0; i < walk->from->targets.count; i++) {
        const tutti_walked *mark = walk->from->targets.data[i]->scratch;
        if (mark->node && !TUTTI_VEC_PUSH(&walk->to->targets, mark->node))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory to spread a job");
    }
    return TUTTI_OK;
}

static tutti_status walk_replica(tutti_graph *job, size_t node_count, const tutti_spread *spread,
                                 int local, tutti_arena *scratch, tutti_graph *to)
{
    tutti_walk walk = {.spread = spread,
                       .scratch = scratch,
                       .from = job,
                       .to = to,
                       .replica = spread->first + local,
                       .device = spread->devices[local]};
    tutti__spread_rows(spread, spread->batch, walk.replica, &walk.first, &walk.rows);
    tutti_status status = TUTTI_OK;
    for (size_t n = 0; status == TUTTI_OK && n < node_count; n++)
        status = tutti__walk_node(&walk, job->nodes.data[n]);
    if (status == TUTTI_OK)
        status = finish(&walk, local == 0);
    return status;
}

/* The replicas' nodes in turn, so that devices come to what they meet in at the same time: else one
 * would wait for another that has its other work still before it. */
static tutti_status take_turns(tutti_graph *graph, const tutti_spread *spread)
{
    size_t count = graph->nodes.count, placed = 0;
    size_t *next = calloc((size_t)spread->local + 1, sizeof *next);
    tutti_node **order = calloc(count + 1, sizeof *order);
    if (!next || !order) {
        free(next);
        free(order);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to spread a job");
    }
    for (int list = 0, ended = 0; placed < count && ended <= spread->local;
         list = (list + 1) % (spread->local + 1)) {
        /* List 0 holds what stands on no replica's device: all of it comes first. */
        const char *device = list > 0 ? spread->devices[list - 1] : NULL;
        size_t before = placed, *at = &next[list];
        for (; *at < count && (placed == before || !device); ++*at) {
            tutti_node *node = graph->nodes.data[*at];
            bool own = false;
            for (int i = 0; !device && i < spread->local; i++)
                own = own || strcmp(node->device, spread->devices[i]) == 0;
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

tutti_status tutti__spread_rewrite(tutti_graph *job, const tutti_spread *spread, tutti_graph **ret)
{
    tutti_graph *to;
    TUTTI_TRY(tutti_graph_create(&to));
    to->trace = true;
    tutti_status status = TUTTI_OK;
    size_t node_count = job->nodes.count;
    tutti_arena scratch = {0};
    for (size_t n = 0; n < node_count; n++)
        job->nodes.data[n]->scratch = NULL;
    for (int i = 0; status == TUTTI_OK && i < spread->local; i++)
        status = walk_replica(job, node_count, spread, i, &scratch, to);
    tutti__arena_free(&scratch);
    if (status == TUTTI_OK)
        status = tutti__graph_prune(to);
    if (status == TUTTI_OK && spread->local < spread->replicas)
        status = tutti__spread_end_last(to);
    if (status == TUTTI_OK && spread->bucket_bytes > 0)
        status = tutti__spread_buckets(to, spread);
    if (status == TUTTI_OK && spread->local > 1)
        status = take_turns(to, spread);
    if (status == TUTTI_OK)
        *ret = to;
    else
        tutti_graph_destroy(to);
    return status;
}
