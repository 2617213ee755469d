/* flush.c: runs what a step has queued: finds what has an effect and what is known. See eager.h. */
#include <stdlib.h>
#include <string.h>

#include "exec/tape/eager.h"
#include "graph/inspect.h"

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

static bool is_small(const tutti_type *type)
{
    int64_t count = tutti_type_count(type);
    return !type->handle && count >= 0 && count * (int64_t)tutti_dtype_size(type->dtype) <= SMALL;
}

bool tutti__eager_want(tutti_edges *list, tutti_edge edge)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->data[i].node == edge.node && list->data[i].index == edge.index)
            return true;
    return TUTTI_VEC_PUSH(list, edge);
}

bool tutti__eager_acts(const tutti_node *node)
{
    if (node->op->flags & TUTTI_OP_UPDATES)
        return true;
    return (node->op->flags & TUTTI_OP_STATEFUL) && !(node->op->flags & TUTTI_OP_HANDLE) &&
           !tutti__is(node, "placeholder");
}

void tutti__eager_drop_controls(tutti_eager *eager)
{
    for (size_t n = eager->done; n < eager->graph->nodes.count; n++) {
        tutti_node *node = eager->graph->nodes.data[n];
        int kept = 0;
        for (int i = 0; i < node->control_count; i++)
            if (node->controls[i]->id >= eager->done && !node->controls[i]->dead)
                node->controls[kept++] = node->controls[i];
        if (kept < node->control_count)
            node->grown = NULL;
        node->control_count = kept;
    }
}

/* Values that cannot be computed again, once they have run. What a variable holds is kept where it
 * is small. */
static bool is_kept(const tutti_node *node, int output)
{
    bool read = tutti__is(node, "read");
    if (node->types[output].handle || (!read && !tutti__eager_acts(node)))
        return false;
    return is_small(&node->types[output]) || (!read && !(node->op->flags & TUTTI_OP_UPDATES));
}

/* What the flush runs for its effect, and which values it keeps. */
static tutti_status collect_effects(tutti_eager *eager)
{
    tutti_graph *graph = eager->graph;
    tutti__eager_drop_controls(eager);
    for (size_t n = eager->done; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        if (node->dead)
            continue;
        if (tutti__eager_acts(node) && !TUTTI_VEC_PUSH(&eager->targets, node))
            return no_memory();
        for (int i = 0; i < node->output_count; i++)
            if (is_kept(node, i) &&
                !tutti__eager_want(&eager->fetches, (tutti_edge){node, (uint32_t)i}))
                return no_memory();
    }
    return tutti__eager_keep_shown(eager);
}

bool tutti__eager_is_stale(const tutti_eager *eager, const tutti_node *node)
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

static bool flush_push(tutti_eager *eager, const tutti_node *node)
{
    if (eager->seen.data[node->id])
        return true;
    eager->seen.data[node->id] = 1;
    return TUTTI_VEC_PUSH(&eager->stack, node);
}

/* Walks back from what is wanted; stops at known values, which become the feeds. */
static tutti_status walk(tutti_eager *eager)
{
    char place[TUTTI_PLACE_TEXT];
    while (eager->stack.count > 0) {
        const tutti_node *node = eager->stack.data[--eager->stack.count];
        if (tutti__eager_is_stale(eager, node))
            return tutti_fail(
                TUTTI_INVALID,
                "%s '%s'%s is needed again after its variable was updated or its effect took place; ask for "
                "gradients and values of a step before the update runs",
                node->op->name, node->name, tutti__node_place(node, place));
        for (int i = 0; i < node->input_count; i++) {
            tutti_tensor *value = tutti__eager_known(eager, node->inputs[i]);
            if (value && !tutti__eager_want(&eager->feeds, node->inputs[i]))
                return no_memory();
            if (!value && !flush_push(eager, node->inputs[i].node))
                return no_memory();
        }
        for (int i = 0; i < node->control_count; i++)
            if (!flush_push(eager, node->controls[i]))
                return no_memory();
    }
    return TUTTI_OK;
}

tutti_status tutti__eager_clear_seen(tutti_eager *eager)
{
    while (eager->seen.count < eager->graph->nodes.count)
        if (!TUTTI_VEC_PUSH(&eager->seen, 0))
            return no_memory();
    memset(eager->seen.data, 0, eager->seen.count);
    return TUTTI_OK;
}

tutti_status tutti__eager_find_feeds(tutti_eager *eager)
{
    TUTTI_TRY(tutti__eager_clear_seen(eager));
    eager->stack.count = 0;
    bool ok = true;
    for (size_t i = 0; ok && i < eager->fetches.count; i++) {
        if (tutti__eager_known(eager, eager->fetches.data[i]))
            ok = tutti__eager_want(&eager->feeds, eager->fetches.data[i]);
        else
            ok = flush_push(eager, eager->fetches.data[i].node);
    }
    for (size_t i = 0; ok && i < eager->targets.count; i++)
        ok = flush_push(eager, eager->targets.data[i]);
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

tutti_status tutti__eager_run(tutti_eager *eager)
{
    size_t count = eager->fetches.count;
    uint64_t key;
    TUTTI_TRY(tutti__step_key(eager, &key));
    tutti_tensor **values = calloc(count + 1, sizeof *values);
    if (!values)
        return no_memory();
    tutti_run_request request = {.feed_count = (int)eager->feeds.count,
                                 .feeds = eager->feeds.data,
                                 .values = eager->values.data,
                                 .fetch_count = (int)count,
                                 .fetches = eager->fetches.data,
                                 .target_count = (int)eager->targets.count,
                                 .targets = eager->targets.data,
                                 .key = key};
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
    return status;
}

static tutti_status run_queued(tutti_eager *eager)
{
    TUTTI_TRY(tutti__step_numbers(eager));
    TUTTI_TRY(tutti__eager_find_feeds(eager));
    TUTTI_TRY(tutti__eager_run(eager));
    mark_done(eager);
    return TUTTI_OK;
}

tutti_status tutti__eager_flush(tutti_eager *eager, tutti_edge edge)
{
    TUTTI_TRY(tutti_graph_check(eager->graph));
    if (eager->failed.status != TUTTI_OK)
        return tutti__error_restore(&eager->failed);
    TUTTI_TRY(tutti__eager_first_values(eager));
    eager->feeds.count = eager->fetches.count = eager->targets.count = 0;
    if (edge.node && !tutti__eager_want(&eager->fetches, edge))
        return no_memory();
    TUTTI_TRY(collect_effects(eager));
    if (eager->targets.count == 0 && !edge.node)
        return TUTTI_OK;
    tutti_wanted_marks wanted = {0};
    tutti_status status = tutti__inspect_wanted_since(eager->graph, eager->done, &wanted);
    for (size_t i = 0; status == TUTTI_OK && i < wanted.count; i++)
        if (!tutti__eager_want(&eager->fetches, wanted.data[i].edge))
            status = no_memory();
    if (status == TUTTI_OK)
        status = run_queued(eager);
    tutti_strategy *strategy = tutti__engine_strategy(eager->engine);
    for (size_t i = 0; status == TUTTI_OK && i < wanted.count; i++)
        status = tutti__inspect_seen(eager->graph, &wanted.data[i],
                                     tutti__eager_known(eager, wanted.data[i].edge),
                                     !strategy || tutti_strategy_rank(strategy) == 0);
    tutti__inspect_free(&wanted);
    return status;
}

/* ---- initial values ---- */

static bool is_initializer(const tutti_node *node)
{
    return !node->dead && tutti__is(node, "assign") && tutti__int(node, "initializer");
}

/* Notes which variables a node uses, by their names in the state. */
static tutti_status note_used(const tutti_node *node, tutti_map *used)
{
    for (int i = 0; (node->op->flags & TUTTI_OP_TAKES_HANDLE) && i < node->input_count; i++) {
        tutti_node *handle = node->inputs[i].node;
        if (tutti__is(handle, "variable"))
            TUTTI_TRY(tutti__map_set(used, tutti__state_name(handle), handle));
    }
    return TUTTI_OK;
}

static tutti_status collect_among(tutti_eager *eager, tutti_map *used)
{
    tutti_graph *graph = eager->graph;
    uint8_t *waits = eager->seen.data; /* by node: for an effect that has not taken place */
    for (size_t n = eager->done; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        if (node->dead)
            continue;
        bool initializer =
            is_initializer(node) && !tutti__map_get(used, tutti__state_name(node->inputs[0].node));
        waits[n] = !initializer && tutti__eager_acts(node);
        for (int i = 0; i < node->input_count; i++)
            waits[n] |= waits[node->inputs[i].node->id];
        for (int i = 0; i < node->control_count; i++)
            waits[n] |= waits[node->controls[i]->id];
        TUTTI_TRY(note_used(node, used));
        if (initializer && !waits[n] && !TUTTI_VEC_PUSH(&eager->targets, node))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a step");
    }
    return TUTTI_OK;
}

/* Initialisers that wait for nothing else of the step, and overtake nothing that uses a variable of
 * the same name, become the targets. */
static tutti_status collect(tutti_eager *eager)
{
    tutti_map used = {0};
    TUTTI_TRY(tutti__eager_clear_seen(eager));
    tutti_status status = collect_among(eager, &used);
    tutti__map_free(&used);
    return status;
}

/* Runs the targets. What they read that the rest of the step may read as well is kept: it is not
 * the same afterwards, as the counter of random numbers. */
static tutti_status run_targets(tutti_eager *eager)
{
    eager->feeds.count = eager->fetches.count = 0;
    TUTTI_TRY(tutti__eager_find_feeds(eager));
    for (size_t n = eager->done; n < eager->graph->nodes.count; n++) {
        tutti_node *node = eager->graph->nodes.data[n];
        if (eager->seen.data[n] && tutti__is(node, "read") &&
            !tutti__eager_known(eager, (tutti_edge){node, 0}) &&
            !TUTTI_VEC_PUSH(&eager->fetches, ((tutti_edge){node, 0})))
            return tutti_fail(TUTTI_NO_MEMORY, "no memory for a step");
    }
    TUTTI_TRY(tutti__eager_run(eager));
    for (size_t i = 0; i < eager->targets.count; i++) {
        tutti_node *node = eager->targets.data[i], *variable = node->inputs[0].node;
        node->dead = true; /* it has run */
        if (variable->updated == node)
            variable->updated = NULL;
    }
    return TUTTI_OK;
}

tutti_status tutti__eager_first_values(tutti_eager *eager)
{
    if (eager->graph->initializers == 0)
        return TUTTI_OK;
    eager->targets.count = 0;
    tutti__eager_drop_controls(eager);
    TUTTI_TRY(collect(eager));
    if (eager->targets.count > 0)
        TUTTI_TRY(run_targets(eager));
    eager->graph->initializers = 0; /* the rest of the step runs those that wait for it */
    return TUTTI_OK;
}

void tutti__eager_keep_variables(tutti_eager *eager)
{
    tutti_graph *graph = eager->graph;
    for (size_t n = eager->done; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        if (!is_initializer(node))
            continue;
        eager->failed.status = TUTTI_OK;
        eager->targets.count = 0;
        tutti__eager_drop_controls(eager);
        bool alone = collect(eager) == TUTTI_OK;
        for (size_t i = 0; alone && i < eager->targets.count; i++)
            if (eager->targets.data[i] == node) {
                eager->targets.data[0] = node;
                eager->targets.count = 1;
                break;
            }
        alone = alone && eager->targets.count == 1 && eager->targets.data[0] == node;
        if (!alone || run_targets(eager) != TUTTI_OK)
            node->inputs[0].node->dead = true; /* it is made anew when it is asked for again */
    }
}
