/* tape.c: operators applied one after the other, run in one piece.
 *
 * The step is a graph that grows (a trace). Reading a value flushes: everything queued that has an
 * effect runs, with the wanted value, as one program; its plan is found by a hash of the trace.
 *
 * Invariants:
 *  1. Nodes below `done` have run. Their values are known (`known`) or can be computed again from
 *     known ones; updates among them are never run again.
 *  2. What is queued runs whole or not at all. After a run that failed nothing more of the step
 * runs.
 *  3. A read of a variable that was updated since it ran cannot be computed again. Small ones are
 * kept when they run; needing a large one is an error that says what to do.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/engine.h"
#include "graph/autodiff.h"
#include "graph/scope.h"
#include "program/trace.h"
#include "tutti/ops.h"
#include "tutti/tape.h"

#define SMALL 1024 /* bytes of a value that is kept without being asked for */

typedef struct known {
    tutti_edge edge;
    tutti_tensor *value;
} known;

typedef TUTTI_VEC(tutti_edge) edges;
typedef TUTTI_VEC(tutti_node *) nodes;

struct tutti_eager {
    tutti_engine *engine;
    tutti_graph *graph;
    tutti_arena lasting;
    TUTTI_VEC(known) known;
    uint32_t done;
    tutti_error failed; /* of a run of this step: nothing of the step runs any more */
    uint64_t hash;      /* of nodes [0, hashed) */
    uint32_t hashed;
    edges feeds, fetches; /* of the flush at hand; kept for their memory */
    nodes targets;
    TUTTI_VEC(tutti_tensor *) values;
    TUTTI_VEC(const tutti_node *) stack;
    TUTTI_VEC(uint8_t) seen;
};

tutti_status tutti_eager_create(const tutti_session_options *options, tutti_eager **ret_eager)
{
    tutti_engine_options engine;
    TUTTI_TRY(tutti__engine_options_of(options, &engine));
    tutti_eager *eager = calloc(1, sizeof *eager);
    if (!eager)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an eager context");
    tutti_status status = tutti__engine_create(&engine, &eager->engine);
    if (status == TUTTI_OK)
        status = tutti_graph_create(&eager->graph);
    if (status != TUTTI_OK) {
        tutti_eager_close(eager);
        return status;
    }
    eager->graph->trace = true;
    eager->graph->lasting = &eager->lasting;
    eager->graph->owner = eager;
    *ret_eager = eager;
    return TUTTI_OK;
}

static void forget_values(tutti_eager *eager)
{
    for (size_t i = 0; i < eager->known.count; i++)
        tutti_tensor_release(eager->known.data[i].value);
    eager->known.count = 0;
}

void tutti_eager_close(tutti_eager *eager)
{
    if (!eager)
        return;
    tutti__trace_flush();
    forget_values(eager);
    TUTTI_VEC_FREE(&eager->known);
    TUTTI_VEC_FREE(&eager->feeds);
    TUTTI_VEC_FREE(&eager->fetches);
    TUTTI_VEC_FREE(&eager->targets);
    TUTTI_VEC_FREE(&eager->values);
    TUTTI_VEC_FREE(&eager->stack);
    TUTTI_VEC_FREE(&eager->seen);
    tutti__engine_destroy(eager->engine);
    tutti_graph_destroy(eager->graph);
    tutti__arena_free(&eager->lasting);
    free(eager);
}

tutti_graph *tutti_eager_graph(tutti_eager *eager)
{
    return eager->graph;
}

static tutti_status no_memory(void)
{
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a step");
}

static tutti_status remember(tutti_eager *eager, tutti_edge edge, tutti_tensor *value)
{
    known k = {edge, value};
    return TUTTI_VEC_PUSH(&eager->known, k) ? TUTTI_OK : no_memory();
}

static tutti_tensor *find_known(const tutti_eager *eager, tutti_edge edge)
{
    for (size_t i = 0; i < eager->known.count; i++)
        if (eager->known.data[i].edge.node == edge.node &&
            eager->known.data[i].edge.index == edge.index)
            return eager->known.data[i].value;
    return NULL;
}

tutti_sym(tutti_use)(tutti_eager *eager, tutti_tensor *value)
{
    if (!value)
        return tutti__poison(eager->graph, TUTTI_INVALID, "tutti_use: the tensor is NULL");
    tutti_sym sym = (tutti_placeholder)(eager->graph, *tutti_tensor_type(value));
    if (!sym.node)
        return sym;
    if (remember(eager, tutti__edge(sym), tutti_tensor_retain(value)) != TUTTI_OK)
        return tutti__poison(eager->graph, TUTTI_NO_MEMORY, "no memory for a step");
    return sym;
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
    if (node->device[0])
        h = tutti__hash_string(h, node->device);
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

static bool want(edges *list, tutti_edge edge)
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
            tutti_tensor *value = find_known(eager, node->inputs[i]);
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
        if (find_known(eager, eager->fetches.data[i]))
            ok = want(&eager->feeds, eager->fetches.data[i]);
        else
            ok = push(eager, eager->fetches.data[i].node);
    }
    for (size_t i = 0; ok && i < eager->targets.count; i++)
        ok = push(eager, eager->targets.data[i]);
    TUTTI_TRY(ok ? walk(eager) : no_memory());
    eager->values.count = 0;
    for (size_t i = 0; i < eager->feeds.count; i++)
        if (!TUTTI_VEC_PUSH(&eager->values, find_known(eager, eager->feeds.data[i])))
            return no_memory();
    return TUTTI_OK;
}

/* What ran is done: handles look at the state again. */
static void mark_done(tutti_eager *eager)
{
    for (uint32_t n = 0; n < eager->graph->nodes.count; n++) {
        tutti_node *node = eager->graph->nodes.data[n];
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
    tutti_request request = {.feed_count = (int)eager->feeds.count,
                             .feeds = eager->feeds.data,
                             .values = eager->values.data,
                             .fetch_count = (int)count,
                             .fetches = eager->fetches.data,
                             .target_count = (int)eager->targets.count,
                             .targets = eager->targets.data,
                             .key = trace_hash(eager)};
    tutti_status status = tutti__engine_run(eager->engine, eager->graph, &request, values);
    if (status != TUTTI_OK)
        tutti__error_capture(status, &eager->failed);
    for (size_t i = 0; status == TUTTI_OK && i < count; i++) {
        if (find_known(eager, eager->fetches.data[i]))
            tutti_tensor_release(values[i]);
        else
            status = remember(eager, eager->fetches.data[i], values[i]);
    }
    free(values);
    if (status == TUTTI_OK)
        mark_done(eager);
    return status;
}

/* Runs what is queued; `edge` (node NULL: none) is known afterwards. */
static tutti_status flush(tutti_eager *eager, tutti_edge edge)
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

static tutti_eager *owner_of(tutti_sym sym)
{
    tutti_graph *graph = tutti_sym_graph(sym);
    return graph ? graph->owner : NULL;
}

tutti_status tutti_value(tutti_sym sym, tutti_tensor **ret_value)
{
    tutti_eager *eager = owner_of(sym);
    if (!eager)
        return sym.node ? tutti_fail(TUTTI_INVALID, "'%s' belongs to a graph; run it in a session",
                                     sym.node->name)
                        : tutti_fail(TUTTI_INVALID, "there is no value: %s", tutti_error_message());
    if (sym.generation != sym.node->generation)
        return tutti_fail(TUTTI_INVALID,
                          "the value is of an earlier step; read it before tutti_step");
    tutti_edge edge = tutti__edge(sym);
    if ((int)sym.index >= sym.node->output_count)
        return tutti_fail(TUTTI_INVALID, "%s '%s' has no value", sym.node->op->name,
                          sym.node->name);
    if (sym.node->types[sym.index].handle)
        TUTTI_TRY(tutti__handle_read(eager->graph, edge, &edge));
    tutti_tensor *value = find_known(eager, edge);
    if (!value) {
        TUTTI_TRY(flush(eager, edge));
        value = find_known(eager, edge);
    }
    const tutti_type *type = tutti_tensor_type(value);
    tutti_tensor *contiguous;
    TUTTI_TRY(tutti_tensor_contiguous(value, &contiguous));
    tutti_status status = tutti_tensor_from(type->dtype, type->rank, type->dims,
                                            tutti_tensor_data(contiguous), ret_value);
    tutti_tensor_release(contiguous);
    return status;
}

double tutti_item(tutti_sym sym)
{
    tutti_tensor *value;
    if (tutti_value(sym, &value) != TUTTI_OK)
        return NAN;
    double item = tutti_tensor_count(value) > 0 ? tutti_tensor_get(value, 0) : NAN;
    tutti_tensor_release(value);
    return item;
}

tutti_status tutti_step(tutti_eager *eager)
{
    tutti_status status = flush(eager, (tutti_edge){0});
    tutti_error error;
    if (status != TUTTI_OK)
        tutti__error_capture(status, &error);
    forget_values(eager);
    tutti__graph_reset(eager->graph);
    eager->done = eager->hashed = 0;
    eager->hash = 0;
    eager->failed.status = TUTTI_OK;
    return status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&error);
}

tutti_tape tutti_tape_begin(tutti_eager *eager)
{
    return (tutti_tape){.graph = eager->graph,
                        .first = (uint32_t)eager->graph->nodes.count,
                        .generation = eager->graph->generation};
}

void tutti_tape_end(tutti_tape *tape)
{
    tape->last = (uint32_t)tape->graph->nodes.count;
}

void tutti_watch(tutti_tape *tape, tutti_sym sym)
{
    if (!sym.node)
        return;
    if (tape->watched_count == 16)
        tutti__poison(tape->graph, TUTTI_TOO_LARGE, "a tape watches at most 16 values");
    else
        tape->watched[tape->watched_count++] = sym;
}

static bool reaches(const tutti_tape *tape, tutti_sym x)
{
    if (!x.node || x.node->graph != tape->graph)
        return false;
    if ((x.node->op->flags & TUTTI_OP_HANDLE) ||
        (x.node->id >= tape->first && x.node->id < tape->last))
        return true;
    for (int i = 0; i < tape->watched_count; i++)
        if (tape->watched[i].node == x.node && tape->watched[i].index == x.index)
            return true;
    return false;
}

void(tutti_gradients)(tutti_tape *tape, tutti_sym y, int count, const tutti_sym *xs,
                      tutti_grad *ret_grads)
{
    memset(ret_grads, 0, (size_t)(count > 0 ? count : 0) * sizeof *ret_grads);
    if (!y.node || tutti_graph_check(tape->graph) != TUTTI_OK)
        return;
    if (tape->generation != tape->graph->generation) {
        tutti__poison(tape->graph, TUTTI_INVALID, "the tape is of an earlier step; record it anew");
        return;
    }
    if (tape->last == 0) /* asked while recording, as nested tapes do */
        tape->last = (uint32_t)tape->graph->nodes.count;
    uint32_t first = tape->graph->recorded.first, last = tape->graph->recorded.last;
    tape->graph->recorded.first = tape->first;
    tape->graph->recorded.last = tape->last;
    (tutti_differentiate)(y, count, xs, ret_grads);
    tape->graph->recorded.first = first;
    tape->graph->recorded.last = last;
    for (int i = 0; i < count; i++)
        if (!reaches(tape, xs[i]))
            ret_grads[i] = (tutti_grad){0};
}

static tutti_status find_variable(tutti_eager *eager, tutti_sym sym, tutti_state_variable **ret)
{
    if (!sym.node || sym.node->graph != eager->graph || !tutti__is(sym.node, "variable"))
        return tutti_fail(TUTTI_INVALID, "not a variable of this context");
    TUTTI_TRY(flush(eager, (tutti_edge){0}));
    *ret =
        tutti__state_find(tutti__engine_state(eager->engine), tutti__str(sym.node, "shared_name"));
    return *ret ? TUTTI_OK
                : tutti_fail(TUTTI_UNINITIALIZED, "variable '%s' has no value yet", sym.node->name);
}

tutti_status tutti_eager_get(tutti_eager *eager, tutti_sym variable, tutti_tensor **ret_value)
{
    tutti_state_variable *found;
    TUTTI_TRY(find_variable(eager, variable, &found));
    return tutti__variable_get(tutti__engine_state(eager->engine), found, ret_value);
}

tutti_status tutti_eager_set(tutti_eager *eager, tutti_sym variable, tutti_tensor *value)
{
    tutti_state_variable *found;
    if (!value)
        return tutti_fail(TUTTI_INVALID, "tutti_eager_set: the value is NULL");
    TUTTI_TRY(find_variable(eager, variable, &found));
    tutti_edge *current = &variable.node->current;
    if (current->node &&
        !find_known(eager, *current)) /* what was queued before sees the old value */
        TUTTI_TRY(flush(eager, *current));
    TUTTI_TRY(tutti__variable_set(tutti__engine_state(eager->engine), found, value));
    *current = (tutti_edge){0};
    return TUTTI_OK;
}

void tutti_eager_describe(tutti_eager *eager, tutti_session_info *ret_info)
{
    tutti_engine_stats stats;
    tutti__engine_stats(eager->engine, &stats);
    *ret_info = (tutti_session_info){.runs = stats.runs,
                                     .compiles = stats.compiles,
                                     .cached_programs = stats.cached,
                                     .last_compile_seconds = stats.compile_seconds,
                                     .arena_bytes = stats.arena_bytes};
}
