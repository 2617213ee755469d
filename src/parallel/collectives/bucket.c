/* bucket.c: sums along the same axes that need not be apart are made together.
 *
 * A sum whose value no other collective waits for (a gradient, a metric) may go with any other such
 * sum; they are joined in the order in which they are born, up to a size. Those that others wait
 * for (statistics of a batch norm) go with those at the same depth: as many collectives lie before
 * them. Neither makes a circle: within a bucket nobody waits for anybody. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parallel/spmd/rewrite.h"

enum { NARROW_LEAST = 64 }; /* elements */

typedef struct sum {
    tutti_node *node;
    uint32_t birth; /* of its input */
    int depth;      /* collectives before it; -1: nobody waits for it */
    int64_t bytes;
    bool narrow; /* may go in a narrow form: not losses, metrics and counts, which are small */
} sum;

typedef struct buckets {
    tutti_graph *graph;
    const tutti_spmd *spmd;
    int *depth;                 /* by node id: collectives on the longest way to it */
    bool *waited;               /* by node id: a collective follows it */
    bool *made;                 /* by node id: by differentiation, or out of what was */
    const tutti_node **updated; /* by node id: the variable whose gradient a sum is, where sums go
                                   in another form; or NULL */
    sum *sums;
    size_t count, found; /* nodes before any was joined */
    const char **names;  /* of sums, in their order, where they go in a form that remembers what it
                            left out */
} buckets;

static bool is_collective(const tutti_node *node)
{
    return (node->op->flags & TUTTI_OP_COLLECTIVE) != 0;
}

static bool is_sum(const tutti_node *node)
{
    return tutti__is(node, "all_reduce_shards") ||
           (tutti__is(node, "all_reduce") && strcmp(tutti__str(node, "op"), "sum") == 0);
}

static void follow(buckets *b, const tutti_node *before, const tutti_node *after)
{
    int depth = b->depth[before->id] + is_collective(before);
    b->depth[after->id] = depth > b->depth[after->id] ? depth : b->depth[after->id];
}

/* Gradients of several batches are gathered in a slot before they are summed. */
static bool holds_gradient(const tutti_node *node)
{
    return tutti__is(node, "variable") && tutti__str(node, "slot_of")[0];
}

static void bucket_measure(buckets *b)
{
    size_t count = b->graph->nodes.count;
    for (size_t n = 0; n < count; n++) {
        const tutti_node *node = b->graph->nodes.data[n];
        b->made[n] = node->backward || holds_gradient(node);
        for (int i = 0; i < node->input_count; i++) {
            follow(b, node->inputs[i].node, node);
            b->made[n] = b->made[n] || b->made[node->inputs[i].node->id];
        }
        for (int i = 0; i < node->control_count; i++)
            follow(b, node->controls[i], node);
    }
    for (size_t n = count; n-- > 0;) {
        const tutti_node *node = b->graph->nodes.data[n];
        bool waited = b->waited[n] || is_collective(node);
        for (int i = 0; waited && i < node->input_count; i++)
            b->waited[node->inputs[i].node->id] = true;
        for (int i = 0; waited && i < node->control_count; i++)
            b->waited[node->controls[i]->id] = true;
    }
}

/* A gradient, whole or gathered, on its way to the update of its variable: it may lose bits, or a
 * part until later. Anything else that users sum may not. */
static bool is_gradient(const buckets *b, const tutti_node *node)
{
    const tutti_node *variable = b->updated[node->id];
    int64_t elements = tutti_type_count(&node->types[0]);
    return node->types[0].dtype == TUTTI_F32 && !b->waited[node->id] && elements >= NARROW_LEAST &&
           b->made[node->inputs[0].node->id] && variable &&
           tutti_type_count(&variable->types[0]) == elements;
}

static tutti_status find_updated(buckets *b)
{
    for (size_t n = 0; b->spmd->wire && n < b->found; n++)
        if (is_sum(b->graph->nodes.data[n]))
            TUTTI_TRY(tutti__spmd_updated(b->graph, b->graph->nodes.data[n], &b->updated[n]));
    return TUTTI_OK;
}

/* What a rank has of a sum: its block, where the value is split along other axes. */
static int64_t elements_of(const buckets *b, const tutti_node *node)
{
    const tutti_claim *claim = node->scratch;
    int64_t begin[TUTTI_MAX_RANK], elements = 1;
    tutti_type type = node->types[0];
    tutti_spmd_rank rank = {.spmd = b->spmd};
    if (claim)
        tutti__spmd_box(&rank, &claim->spec, &node->types[0], begin, type.dims);
    for (int i = 0; i < type.rank; i++)
        elements *= type.dims[i];
    return elements;
}

static void collect(buckets *b)
{
    for (size_t n = 0; n < b->found; n++) {
        tutti_node *node = b->graph->nodes.data[n];
        if (!is_sum(node))
            continue;
        b->sums[b->count++] =
            (sum){.node = node,
                  .birth = node->inputs[0].node->id,
                  .depth = b->waited[n] ? b->depth[n] : -1,
                  .narrow = is_gradient(b, node),
                  .bytes = elements_of(b, node) * (int64_t)tutti_dtype_size(node->types[0].dtype)};
    }
}

/* The axes that a sum is made along. */
static int compare_axes(const sum *a, const sum *b)
{
    return strcmp(tutti__str(a->node, "axis"), tutti__str(b->node, "axis"));
}

/* By axes, depth, type, form, birth; equal ones as they stand in the graph. */
static int bucket_compare(const void *left, const void *right)
{
    const sum *a = left, *b = right;
    int axes = compare_axes(a, b);
    if (axes != 0)
        return axes;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    if (a->node->types[0].dtype != b->node->types[0].dtype)
        return a->node->types[0].dtype < b->node->types[0].dtype ? -1 : 1;
    if (a->narrow != b->narrow)
        return a->narrow ? 1 : -1;
    if (a->birth != b->birth)
        return a->birth < b->birth ? -1 : 1;
    return a->node->id < b->node->id ? -1 : a->node->id > b->node->id;
}

/* A bucket that is only started: whoever uses it waits for the end. */
static tutti_status add_wait(buckets *b, tutti_node *many, const char *channel, tutti_node **ret)
{
    tutti_attr attrs[] = {TUTTI_STR("axis", tutti__str(many, "axis")),
                          TUTTI_INT("size", tutti__int(many, "size")),
                          TUTTI_STR("channel", channel)};
    TUTTI_TRY(tutti__node_add(b->graph, tutti_op_find("all_reduce_wait"), "wait", 1,
                              &(tutti_edge){many, 0}, 3, attrs, ret));
    (*ret)->device = "";
    for (int i = 0; i < many->attr_count; i++)
        if (strcmp(many->attrs[i].name, "starts") == 0)
            many->attrs[i].value.i = 1;
    return TUTTI_OK;
}

static bool follows(const tutti_node *user, const tutti_node *joined)
{
    for (int i = 0; i < user->input_count; i++)
        if (user->inputs[i].node == joined)
            return true;
    for (int i = 0; i < user->control_count; i++)
        if (user->controls[i] == joined)
            return true;
    return false;
}

/* What follows a sum runs after the wait; results and targets too, through it. */
static tutti_status follow_wait(buckets *b, const tutti_node *joined, tutti_node *wait)
{
    for (size_t n = 0; n < b->found; n++) {
        tutti_node *user = b->graph->nodes.data[n];
        if (user->dead || !follows(user, joined))
            continue;
        tutti_node **controls =
            tutti__arena_array(&b->graph->arena, (size_t)user->control_count + 1, sizeof *controls);
        if (!controls)
            return tutti_fail(TUTTI_NO_MEMORY, "no memory to join gradients");
        if (user->control_count > 0)
            memcpy(controls, user->controls, (size_t)user->control_count * sizeof *controls);
        controls[user->control_count++] = wait;
        user->controls = controls;
    }
    for (size_t i = 0; i < b->graph->results.count; i++)
        if (b->graph->results.data[i].node == joined && !TUTTI_VEC_PUSH(&b->graph->targets, wait))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory to join gradients");
    return TUTTI_OK;
}

/* Who waited for a sum waits for the bucket. */
static void follow_controls(const buckets *b, const tutti_node *joined, tutti_node *many)
{
    for (size_t n = 0; n < b->found; n++) {
        tutti_node *node = b->graph->nodes.data[n];
        for (int i = 0; i < node->control_count; i++)
            if (node->controls[i] == joined)
                node->controls[i] = many;
    }
}

/* Each with a newline behind it; "" where nothing is remembered, NULL where there is no memory. */
static const char *names_of(const buckets *b, const sum *sums, int count)
{
    const char *const *names = b->names + (sums - b->sums);
    if (!names[0])
        return "";
    tutti_text text = {0};
    for (int i = 0; i < count; i++)
        tutti__text_add(&text, "%s\n", names[i]);
    const char *joined = text.data ? tutti__arena_string(&b->graph->arena, text.data) : NULL;
    tutti__text_free(&text);
    return joined;
}

static tutti_status bucket_join(buckets *b, const sum *sums, int count, int number)
{
    tutti_edge *inputs = calloc((size_t)count, sizeof *inputs);
    const char *names = names_of(b, sums, count);
    tutti_node *many;
    char channel[32], name[64];
    if (!inputs || !names) {
        free(inputs);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to join gradients");
    }
    for (int i = 0; i < count; i++)
        inputs[i] = sums[i].node->inputs[0];
    snprintf(channel, sizeof channel, "bucket%d", number);
    snprintf(name, sizeof name, "bucket_%d", number);
    bool shards = b->spmd->shards > 0;
    tutti_attr attrs[] = {TUTTI_STR("axis", tutti__str(sums[0].node, "axis")),
                          TUTTI_INT("size", tutti__int(sums[0].node, "size")),
                          TUTTI_STR("channel", channel),
                          TUTTI_INT("outputs", count),
                          shards ? TUTTI_INT("shards", b->spmd->shards) : TUTTI_STR("op", "sum"),
                          shards ? TUTTI_INT("blocks", tutti__int(sums[0].node, "blocks"))
                                 : TUTTI_STR("wire", sums[0].narrow ? b->spmd->wire : ""),
                          TUTTI_STR("names", names)};
    tutti_status status =
        tutti__node_add(b->graph, tutti_op_find(shards ? "all_reduce_shards" : "all_reduce_many"),
                        name, count, inputs, names[0] ? 7 : 6, attrs, &many);
    free(inputs);
    TUTTI_TRY(status);
    many->device = "";
    tutti_node *wait = NULL;
    if (b->spmd->overlap && sums[0].depth < 0 && !shards && !sums[0].narrow)
        TUTTI_TRY(add_wait(b, many, channel, &wait));
    for (int i = 0; wait && i < count; i++)
        TUTTI_TRY(follow_wait(b, sums[i].node, wait));
    for (int i = 0; i < count; i++) {
        tutti_node *node = sums[i].node;
        tutti__graph_replace(b->graph, (tutti_edge){node, 0}, (tutti_edge){many, (uint32_t)i});
        for (size_t t = 0; t < b->graph->targets.count; t++)
            if (b->graph->targets.data[t] == node)
                b->graph->targets.data[t] = many;
        follow_controls(b, node, many);
        node->dead = true;
    }
    return TUTTI_OK;
}

static bool alike(const sum *a, const sum *b)
{
    return compare_axes(a, b) == 0 && a->depth == b->depth && a->narrow == b->narrow &&
           a->node->types[0].dtype == b->node->types[0].dtype;
}

/* The size of the bucket that begins at `first`. Beside the backward pass the last buckets are
 * smaller, each half of what is left: the very last travels when nothing is left to compute. */
static int64_t most_bytes(const buckets *b, size_t first)
{
    enum { LEAST = 8 }; /* part of a bucket below which a message's own time counts */
    int64_t most = b->spmd->bucket_bytes, left = 0;
    if (!b->spmd->overlap || b->spmd->shards > 0 || b->sums[first].depth >= 0 ||
        b->sums[first].narrow)
        return most;
    for (size_t i = first; i < b->count && alike(&b->sums[i], &b->sums[first]); i++)
        left += b->sums[i].bytes;
    left = left / 2 > most / LEAST ? left / 2 : most / LEAST;
    return left < most ? left : most;
}

static int count_named(const buckets *b, size_t before, const char *name)
{
    size_t length = strlen(name);
    int found = 0;
    for (size_t i = 0; i < before; i++)
        found += b->names[i] && strncmp(b->names[i], name, length) == 0 &&
                 (b->names[i][length] == 0 || b->names[i][length] == '#');
    return found;
}

/* Those that are compressed are known by the variables whose gradients they are: names of nodes
 * depend on how a job is spread, and on what a tape recorded before. */
static tutti_status name_sums(buckets *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const sum *each = &b->sums[i];
        if (!each->narrow || !strchr(b->spmd->wire, ':'))
            continue;
        const char *of = tutti__spmd_variable_name(b->updated[each->node->id]);
        tutti_text text = {0};
        int before = count_named(b, i, of);
        tutti__text_add(&text, before > 0 ? "%s#%d" : "%s", of, before + 1);
        b->names[i] = text.data ? tutti__arena_string(&b->graph->arena, text.data) : NULL;
        tutti__text_free(&text);
        if (!b->names[i])
            return tutti_fail(TUTTI_NO_MEMORY, "no memory to join gradients");
    }
    return TUTTI_OK;
}

static tutti_status join_all(buckets *b)
{
    int number = 0;
    collect(b);
    qsort(b->sums, b->count, sizeof *b->sums, bucket_compare);
    TUTTI_TRY(name_sums(b));
    for (size_t first = 0; first < b->count;) {
        size_t end = first;
        int64_t bytes = 0, most = most_bytes(b, first);
        while (end < b->count && alike(&b->sums[end], &b->sums[first]) &&
               (end == first || bytes + b->sums[end].bytes <= most))
            bytes += b->sums[end++].bytes;
        TUTTI_TRY(bucket_join(b, b->sums + first, (int)(end - first), number++));
        first = end;
    }
    return TUTTI_OK;
}

tutti_status tutti__spmd_buckets(tutti_graph *graph, const tutti_spmd *spmd)
{
    size_t count = graph->nodes.count;
    buckets b = {.graph = graph, .spmd = spmd, .found = count};
    b.depth = calloc(count + 1, sizeof *b.depth);
    b.waited = calloc(count + 1, sizeof *b.waited);
    b.made = calloc(count + 1, sizeof *b.made);
    b.updated = calloc(count + 1, sizeof *b.updated);
    b.sums = calloc(count + 1, sizeof *b.sums);
    b.names = calloc(count + 1, sizeof *b.names);
    tutti_status status = b.depth && b.waited && b.made && b.updated && b.sums && b.names
                              ? TUTTI_OK
                              : tutti_fail(TUTTI_NO_MEMORY, "no memory to join gradients");
    if (status == TUTTI_OK) {
        bucket_measure(&b);
        status = find_updated(&b);
    }
    if (status == TUTTI_OK)
        status = join_all(&b);
    free(b.depth);
    free(b.waited);
    free(b.made);
    free(b.updated);
    free(b.sums);
    free(b.names);
    if (status == TUTTI_OK)
        status = tutti__graph_sort(graph);
    return status == TUTTI_OK && spmd->overlap ? tutti__spmd_overlap(graph) : status;
}
