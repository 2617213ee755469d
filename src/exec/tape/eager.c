/* eager.c: a context's life, its values, steps and variables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/require.h"
#include "exec/plan/share.h"
#include "exec/run/server_run.h"
#include "exec/tape/eager.h"
#include "graph/scope.h"
#include "program/trace.h"
#include "tutti/ops.h"

/* Of an engine of its own only what was restored: a variable is made once. */
static bool holds(const tutti_graph *graph, const char *name)
{
    const tutti_eager *eager = graph->owner;
    tutti_state *state = tutti__engine_state(eager->engine);
    return eager->shared ? tutti__state_has_value(state, name)
                         : tutti__state_expected(state, name) != NULL;
}

/* Takes the engine over unless it is shared, also on failure. */
static tutti_status create(tutti_engine *engine, bool shared, tutti_eager **ret_eager)
{
    tutti_eager *eager = calloc(1, sizeof *eager);
    if (!eager) {
        if (!shared)
            tutti__engine_destroy(engine);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an eager context");
    }
    eager->engine = engine;
    eager->shared = shared;
    tutti_status status = tutti_graph_create(&eager->graph);
    if (status != TUTTI_OK) {
        tutti_eager_close(eager);
        return status;
    }
    eager->graph->trace = true;
    eager->graph->lasting = &eager->lasting;
    eager->graph->owner = eager;
    eager->graph->holds = holds;
    *ret_eager = eager;
    return TUTTI_OK;
}

tutti_status tutti_eager_open_with(const tutti_session_options *options, tutti_eager **ret_eager)
{
    TUTTI_REQUIRE(ret_eager);
    tutti_engine_options engine_options;
    tutti_engine *engine;
    TUTTI_TRY(tutti__engine_options_of(options, &engine_options));
    TUTTI_TRY(tutti__engine_create(&engine_options, &engine));
    return create(engine, false, ret_eager);
}

tutti_status tutti__eager_share(tutti_engine *engine, tutti_eager **ret_eager)
{
    return create(engine, true, ret_eager);
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
    tutti__eager_recorded(eager);
    tutti__trace_flush();
    forget_values(eager);
    TUTTI_VEC_FREE(&eager->known);
    TUTTI_VEC_FREE(&eager->losses);
    TUTTI_VEC_FREE(&eager->feeds);
    TUTTI_VEC_FREE(&eager->fetches);
    TUTTI_VEC_FREE(&eager->targets);
    TUTTI_VEC_FREE(&eager->values);
    TUTTI_VEC_FREE(&eager->stack);
    TUTTI_VEC_FREE(&eager->seen);
    tutti__step_key_free(eager);
    if (!eager->shared)
        tutti__engine_destroy(eager->engine);
    tutti_graph_destroy(eager->graph);
    tutti__arena_free(&eager->lasting);
    free(eager);
}

tutti_graph *tutti_eager_graph(tutti_eager *eager)
{
    if (!eager)
        return NULL;
    return eager->graph;
}
/* Under a strategy, values with as many rows as the step's first one are cut by rows. What is
 * computed does not depend on it: only who computes it. */
static tutti_sym cut_batch(tutti_eager *eager, tutti_sym sym, const tutti_tensor *value)
{
    bool cuts = tutti__strategy_rewrites(tutti__engine_strategy(eager->engine)) ||
                tutti__engine_imagines(eager->engine);
    if (!cuts || tutti_tensor_rank(value) == 0 || tutti_tensor_dims(value)[0] < 1)
        return sym;
    if (eager->batch == 0)
        eager->batch = tutti_tensor_dims(value)[0];
    return tutti_tensor_dims(value)[0] == eager->batch ? tutti_split_batch(sym) : sym;
}

void tutti_eager_own_rows(tutti_eager *eager, bool own)
{
    if (!eager)
        return;
    eager->own_rows = own;
}

/* Of a value that holds this process's rows: what the whole batch would be, so that all processes
 * trace the same step. False: it does not. */
static bool is_whole(const tutti_eager *eager, tutti_type *type)
{
    const tutti_strategy *strategy = tutti__engine_strategy(eager->engine);
    if (!eager->own_rows || tutti__strategy_processes(strategy) == 1 || !strategy->counts ||
        type->rank < 1 || type->dims[0] != strategy->counts[tutti_strategy_rank(strategy)])
        return false;
    type->dims[0] = strategy->counted;
    return true;
}

tutti_sym(tutti_eager_feed)(tutti_eager *eager, tutti_tensor *value)
{
    if (tutti__require(eager, __func__, "eager") != TUTTI_OK)
        return TUTTI_NO_SYM;
    if (!value)
        return tutti__poison(eager->graph, TUTTI_INVALID, "tutti_eager_feed: the tensor is NULL");
    tutti_type type = *tutti_tensor_type(value);
    bool own = is_whole(eager, &type);
    tutti_sym sym = (tutti_placeholder)(eager->graph, type);
    if (!sym.node)
        return sym;
    sym = own ? tutti_split_batch(sym) : eager->own_rows ? sym : cut_batch(eager, sym, value);
    if (tutti__eager_remember(eager, tutti__edge(sym), tutti_tensor_retain(value)) != TUTTI_OK)
        return tutti__poison(eager->graph, TUTTI_NO_MEMORY, "no memory for a step");
    return sym;
}
static tutti_eager *owner_of(tutti_sym sym)
{
    tutti_graph *graph = tutti_sym_graph(sym);
    return graph ? graph->owner : NULL;
}

tutti_status tutti_value(tutti_sym sym, tutti_tensor **ret_value)
{
    TUTTI_REQUIRE(ret_value);
    tutti_eager *eager = owner_of(sym);
    if (!eager)
        return sym.node ? tutti_fail(TUTTI_INVALID, "'%s' belongs to a graph; run it in a session",
                                     sym.node->name)
                        : tutti_fail(TUTTI_INVALID,
                                     "there is no such value: a gradient that does not exist, or "
                                     "what a call gave that failed (tutti_eager_step says why)");
    if (sym.generation != sym.node->generation)
        return tutti_fail(TUTTI_INVALID,
                          "the value is of an earlier step; read it before tutti_eager_step");
    tutti_edge edge = tutti__edge(sym);
    if ((int)sym.index >= sym.node->output_count)
        return tutti_fail(TUTTI_INVALID, "%s '%s' has no value", sym.node->op->name,
                          sym.node->name);
    if (sym.node->types[sym.index].handle)
        TUTTI_TRY(tutti__handle_read(eager->graph, edge, &edge));
    tutti_tensor *value = tutti__eager_known(eager, edge);
    if (!value) {
        TUTTI_TRY(tutti__eager_flush(eager, edge));
        value = tutti__eager_known(eager, edge);
    }
    const tutti_type *type = tutti_tensor_type(value);
    tutti_tensor *contiguous;
    TUTTI_TRY(tutti_tensor_contiguous(value, &contiguous));
    tutti_status status = tutti_tensor_from(type->dtype, type->rank, type->dims,
                                            tutti_tensor_data(contiguous), ret_value);
    tutti_tensor_release(contiguous);
    return status;
}

/* For tutti_eager_check: a number alone does not tell a failure from a NaN. */
static void note_failure(tutti_eager *eager, tutti_status status)
{
    if (eager && eager->first.status == TUTTI_OK)
        tutti__error_capture(status, &eager->first);
}

double tutti_scalar_value(tutti_sym sym)
{
    tutti_tensor *value;
    tutti_status status = tutti_value(sym, &value);
    if (status != TUTTI_OK) {
        note_failure(owner_of(sym), status);
        return NAN;
    }
    double item = tutti_tensor_count(value) > 0 ? tutti_tensor_get(value, 0) : NAN;
    tutti_tensor_release(value);
    return item;
}

tutti_status tutti_eager_step(tutti_eager *eager)
{
    TUTTI_REQUIRE(eager);
    tutti__eager_recorded(eager);
    tutti_status status = tutti__eager_flush(eager, (tutti_edge){0});
    tutti_error error;
    if (status != TUTTI_OK) {
        tutti__error_capture(status, &error);
        note_failure(eager, status);
        eager->graph->error.status = TUTTI_OK; /* the next step begins clean */
        tutti__eager_keep_variables(eager);
    }
    forget_values(eager);
    tutti__graph_reset(eager->graph);
    eager->done = eager->hashed = 0;
    eager->numbers.count = eager->losses.count = 0;
    eager->batch = 0;
    eager->hash = 0;
    eager->failed.status = TUTTI_OK;
    return status == TUTTI_OK ? TUTTI_OK : tutti__error_restore(&error);
}

tutti_status tutti__eager_failure(const tutti_eager *eager)
{
    const tutti_error *errors[] = {&eager->first, &eager->failed, &eager->graph->error};
    for (size_t i = 0; i < TUTTI_COUNT(errors); i++)
        if (errors[i]->status != TUTTI_OK)
            return tutti__error_restore(errors[i]);
    return TUTTI_OK;
}

tutti_status tutti_eager_check(tutti_eager *eager)
{
    TUTTI_REQUIRE(eager);
    if (eager->first.status == TUTTI_OK)
        return TUTTI_OK;
    tutti_status status = tutti__error_restore(&eager->first);
    eager->first.status = TUTTI_OK;
    return status;
}

static tutti_status find_variable(tutti_eager *eager, tutti_sym sym, tutti_state_variable **ret)
{
    if (!sym.node || sym.node->graph != eager->graph || !tutti__is(sym.node, "variable"))
        return tutti_fail(TUTTI_INVALID, "not a variable of this context");
    TUTTI_TRY(tutti__eager_flush(eager, (tutti_edge){0}));
    *ret = tutti__state_find(tutti__engine_state(eager->engine), tutti__state_name(sym.node));
    return *ret ? TUTTI_OK
                : tutti_fail(TUTTI_UNINITIALIZED, "variable '%s' has no value yet", sym.node->name);
}

tutti_status tutti_eager_get(tutti_eager *eager, tutti_sym variable, tutti_tensor **ret_value)
{
    TUTTI_REQUIRE(eager);
    tutti_state_variable *found;
    TUTTI_TRY(find_variable(eager, variable, &found));
    TUTTI_TRY(tutti__spmd_check_variable(
        variable.node, tutti__strategy_meeting_replicas(tutti__engine_strategy(eager->engine))));
    return tutti__engine_get(eager->engine, found, ret_value);
}

/* What was read before the variable is set sees the old value, whenever it is computed. */
static tutti_status flush_reads(tutti_eager *eager, const tutti_node *variable)
{
    for (uint32_t n = 0; n < eager->graph->nodes.count; n++) {
        tutti_node *node = eager->graph->nodes.data[n];
        tutti_edge edge = {node, 0};
        if (tutti__is(node, "read") && node->inputs[0].node == variable &&
            !tutti__eager_known(eager, edge) && !tutti__eager_is_stale(eager, node))
            TUTTI_TRY(tutti__eager_flush(eager, edge));
    }
    return TUTTI_OK;
}

tutti_status tutti_eager_set(tutti_eager *eager, tutti_sym variable, tutti_tensor *value)
{
    TUTTI_REQUIRE(eager);
    tutti_state_variable *found;
    if (!value)
        return tutti_fail(TUTTI_INVALID, "tutti_eager_set: the value is NULL");
    if (variable.node && variable.node->graph == eager->graph)
        TUTTI_TRY(flush_reads(eager, variable.node));
    TUTTI_TRY(find_variable(eager, variable, &found));
    TUTTI_TRY(tutti__variable_set(tutti__engine_state(eager->engine), found, value));
    TUTTI_TRY(tutti__server_written(eager->engine, found->name, value));
    variable.node->current = (tutti_edge){0};
    return TUTTI_OK;
}

void tutti_eager_describe(tutti_eager *eager, tutti_session_info *ret_info)
{
    tutti_engine_stats stats = {0};
    if (!ret_info)
        return;
    if (eager)
        tutti__engine_stats(eager->engine, &stats);
    *ret_info = (tutti_session_info){.runs = stats.runs,
                                     .compiles = stats.compiles,
                                     .cached_programs = stats.cached,
                                     .last_compile_seconds = stats.compile_seconds,
                                     .arena_bytes = stats.arena_bytes,
                                     .arena_bound = stats.arena_bound};
}
