/* flush.c: runs what a step has queued: finds what has an effect, what is known, and a plan by the
 * trace's hash. See eager.h. */
#include <stdlib.h>
#include <string.h>

#include "exec/eager.h"

#define SMALL 1024 /* bytes of a value that is kept without being asked for */

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a step");
}

tutti_status tutti__eager_remember(tutti_eager *eager, tutti_edge edge, tutti_tensor *value)
{
    tutti_known k = {edge, value};
    if (TUTTI_VEC_PUSH(&eager->known, k))
        return TUTTI_OK;
    tutti_tensor_release(value);
    return no_memory();
}

tutti_tensor *tutti__eager_known(const tutti_eager *eager, tutti_edge edge)
{
    for (size_t i = 0; i < eager->known.count; i++)
        if (eager->known.data[i].edge.node == edge.node &&
            eager->known.data[i].edge.index == edge.index)
            return eager->known.data[i].value;
    return NULL;
}
static uint64_t hash_node(uint64_t h, const tutti_node *node)
{
    h = tutti__hash_mix(h, (uint64_t)(uintptr_t)node->op);
    for (int i = 0; i < node->input_count; i++)
        h = tutti__hash_mix(h, (uint64_t)node->inputs[i].node->id << 32 | node->inputs[i].index);
    for (int i = 0; i < node->control_count; i++)
        h = tutti__hash_mix(h, ~(uint64_t)node->controls[i]->id);
    for (int i = 0; i < node->attr_count; i++)
        h = tutti__attr_hash(h, &node->attrs[i]);
    if (node->shardings)
        h = tutti__hash_mix(h, 1);
    if (node->device[0])
        h = tutti__hash_string(h, node->device);
    if (node->remat)
        h = tutti__hash_mix(h, ~(uint64_t)node->region);
    return h;
}

/* Placeholders' shapes are in the key of the request; every other type follows from them. */
static uint64_t trace_hash(tutti_eager *eager)
{
    for (; eager->hashed < eager->graph->nodes.count; eager->hashed++)
        eager->hash = hash_node(eager->hash, eager->graph->nodes.data[eager->hashed]);
    return tutti__hash_mix(eager->hash, eager->hashed) | 1;
}

static bool is_small(const tutti_type *type)
{
    int64_t count = tutti_type_count(type);
    return !type->handle && count >= 0 && count * (int64_t)tutti_dtype_size(type->dtype) <= SMALL;
}

static bool want(tutti_edges *list, tutti_edge edge)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->data[i].node == edge.node && list->data[i].index == edge.index)
            return true;
    return TUTTI_VEC_PUSH(list, edge);
}

/* What the flush runs for its effect, and which small values it keeps: those that could not be
 * computed again. Control edges to nodes that have run are dropped: they are fulfilled. */
static tutti_status collect_effects(tutti_eager *eager)
{
    tutti_graph *graph = eager->graph;
    for (size_t n = eager->done; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        int kept = 0;
        for (int i = 0; i < node->control_count; i++)
            if (node->controls[i]->id >= eager->done)
                node->controls[kept++] = node->controls[i];
        node->control_count = kept;
        bool update = (node->op->flags & TUTTI_OP_UPDATES) != 0;
        bool effect = update || ((node->op->flags & TUTTI_OP_STATEFUL) &&
                                 !(node->op->flags & TUTTI_OP_HANDLE));
        if (effect && !tutti__is(node, "placeholder") && !tutti__is(node, "read") &&
            !TUTTI_VEC_PUSH(&eager->targets, node))
            return no_memory();
        bool fragile = update || (effect && node->output_count > 0) || tutti__is(node, "read");
        if (fragile && node->output_count > 0 && is_small(&node->types[0]) &&
            tutti__is(node, "placeholder") == false &&
            !want(&eager->fetches, (tutti_edge){node, 0}))
            return no_memory();
    }
    return TUTTI_OK;
}

/* A read that ran before an update which also has run: its value is gone. */
static bool is_stale(const tutti_eager *eager, const tutti_node *node)
{
    if (node->id >= eager->done)
        return false;
    if (node->op->flags & (TUTTI_OP_UPDATES | TUTTI_OP_STATEFUL))
        return !tutti__is(node, "read") && !(node->op->flags & TUTTI_OP_HANDLE);
    if (!tutti__is(node, "read"))
        return false;
    for (uint32_t n = node->id + 1; n < eager->done; n++) {
        const tutti_node *later = eager->graph->nodes.data[n];
        for (int i = 0; (later->op->flags & TUTTI_OP_UPDATES) && i < later->input_count; i++)
            if (later->inputs[i].node == node->inputs[0].node)
                return true;
    }
    return false;
}

static bool push(tutti_eager *eager, const tutti_node *node)
{
    if (eager->seen.data[node->id])
        return true;
    eager->seen.data[node->id] = 1;
    return TUTTI_VEC_PUSH(&eager->stack, node);
}

/* Walks back from what is wanted; stops at known values, which become the feeds. */
static tutti_status walk(tutti_eager *eager)
{
    while (eager->stack.count > 0) {
        const tutti_node *node = eager->stack.data[--eager->stack.count];
        if (is_stale(eager, node))
            return tutti_fail(
                TUTTI_INVALID,
                "%s '%s' (%s:%d) is needed again after its variable was updated or its effect took place; ask for "
                "gradients and values of a step before the update runs",
                node->op->name, node->name, node->file ? node->file : "?", node->line);
        for (int i = 0; i < node->input_count; i++) {
            tutti_tensor *value = tutti__eager_known(eager, node->inputs[i]);
            if (value && !want(&eager->feeds, node->inputs[i]))
                return no_memory();
            if (!value && !push(eager, node->inputs[i].node))
                return no_memory();
        }
        for (int i = 0; i < node->control_count; i++)
            if (!push(eager, node->controls[i]))
                return no_memory();
    }
    return TUTTI_OK;
}

static tutti_status find_feeds(tutti_eager *eager)
{
    while (eager->seen.count < eager->graph->nodes.count)
        if (!TUTTI_VEC_PUSH(&eager->seen, 0))
            return no_memory();
    memset(eager->seen.data, 0, eager->seen.count);
    eager->stack.count = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < eager->fetches.count; i++) {
        if (tutti__eager_known(eager, eager->fetches.data[i]))
            ok = want(&eager->feeds, eager->fetches.data[i]);
        else
            ok = push(eager, eager->fetches.data[i].node);
    }
    for (size_t i = 0; ok && i < eager->targets.count; i++)
        ok = push(eager, eager->targets.data[i]);
    TUTTI_TRY(ok ? walk(eager) : no_memory());
    eager->values.count = 0;
    for (size_t i = 0; i < eager->feeds.count; i++)
        if (!TUTTI_VEC_PUSH(&eager->values, tutti__eager_known(eager, eager->feeds.data[i])))
            return no_memory();
    return TUTTI_OK;
}

/* What ran is done: handles look at the state again, and what is computed again waits for nothing,
 * so that a read of a variable that was made or updated before it asks the state. */
static void mark_done(tutti_eager *eager)
{
    for (uint32_t n = 0; n < eager->graph->nodes.count; n++) {
        tutti_node *node = eager->graph->nodes.data[n];
        node->control_count = 0;
        if (node->op->flags & TUTTI_OP_HANDLE)
            node->updated = NULL;
    }
    eager->done = (uint32_t)eager->graph->nodes.count;
}

static tutti_status run(tutti_eager *eager)
{
    size_t count = eager->fetches.count;
    tutti_tensor **values = calloc(count + 1, sizeof *values);
    if (!values)
        return no_memory();
    tutti_ask request = {.feed_count = (int)eager->feeds.count,
                         .feeds = eager->feeds.data,
                         .values = eager->values.data,
                         .fetch_count = (int)count,
                         .fetches = eager->fetches.data,
                         .target_count = (int)eager->targets.count,
                         .targets = eager->targets.data,
                         .key = trace_hash(eager)};
    if (eager->own_rows)
        tutti__engine_own_rows(eager->engine, &request);
    tutti_status status = tutti__engine_run(eager->engine, eager->graph, &request, values);
    if (status != TUTTI_OK)
        tutti__error_capture(status, &eager->failed);
    for (size_t i = 0; i < count; i++) {
        if (status != TUTTI_OK || tutti__eager_known(eager, eager->fetches.data[i]))
            tutti_tensor_release(values[i]);
        else
            status = tutti__eager_remember(eager, eager->fetches.data[i], values[i]);
    }
    free(values);
    if (status == TUTTI_OK)
        mark_done(eager);
    return status;
}

tutti_status tutti__eager_flush(tutti_eager *eager, tutti_edge edge)
{
    TUTTI_TRY(tutti_graph_check(eager->graph));
    if (eager->failed.status != TUTTI_OK)
        return tutti__error_restore(&eager->failed);
    eager->feeds.count = eager->fetches.count = eager->targets.count = 0;
    if (edge.node && !want(&eager->fetches, edge))
        return no_memory();
    TUTTI_TRY(collect_effects(eager));
    if (eager->targets.count == 0 && !edge.node)
        return TUTTI_OK;
    TUTTI_TRY(find_feeds(eager));
    return run(eager);
}
