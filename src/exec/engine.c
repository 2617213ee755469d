/* engine.c: the cache of plans, and runs through it. */
#include "exec/engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/world.h"
#include "exec/cache.h"
#include "exec/rehearse.h"

static const tutti_param device_param =
    TUTTI_PARAM("DEVICE", "cpu:0",
                "where nodes go that have no wish, in sessions and tapes that name no device");

struct tutti_engine {
    tutti_engine_options options;
    char *device;
    tutti_state *state;
    pthread_mutex_t lock;
    tutti_plan_cache cache;
    tutti_plan *last; /* compiled last, for print */
    uint64_t runs, compiles;
    double compile_seconds;
    _Atomic uint64_t next_run;
    tutti_engine_watch watch; /* of plans that are new */
};

tutti_status tutti__engine_create(const tutti_engine_options *options, tutti_engine **ret)
{
    tutti_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a session");
    engine->options = *options;
    engine->device = strdup(options->device ? options->device : tutti__param_text(&device_param));
    engine->options.device = engine->device;
    if (engine->options.cache_limit <= 0)
        engine->options.cache_limit = 128;
    if (engine->options.deadline_ns <= 0)
        engine->options.deadline_ns = 300 * (int64_t)1000000000;
    pthread_mutex_init(&engine->lock, NULL);
    tutti__strategy_retain(options->strategy);
    tutti_status status = engine->device ? tutti__state_create(&engine->state)
                                         : tutti_fail(TUTTI_NO_MEMORY, "no memory for a session");
    tutti_device *device;
    if (status == TUTTI_OK)
        status = tutti__device_open(engine->device, &device);
    if (status != TUTTI_OK)
        tutti__engine_destroy(engine);
    else
        *ret = engine;
    return status;
}

void tutti__engine_destroy(tutti_engine *engine)
{
    if (!engine)
        return;
    tutti__cache_free(&engine->cache);
    tutti__plan_release(engine->last);
    tutti__state_destroy(engine->state);
    tutti_strategy_close(engine->options.strategy);
    pthread_mutex_destroy(&engine->lock);
    free(engine->device);
    free(engine);
}

tutti_state *tutti__engine_state(tutti_engine *engine)
{
    return engine->state;
}

tutti_strategy *tutti__engine_strategy(const tutti_engine *engine)
{
    return engine->options.strategy;
}

/* Variables that have values already go to the strategy's devices. */
static tutti_status move_state(tutti_engine *engine, const tutti_strategy *strategy)
{
    const char *central = strategy->central;
    int count = strategy->kind->central ? 1 : strategy->local;
    const char *const *names = strategy->kind->central ? &central : strategy->device_names;
    tutti_device *device;
    tutti_piece *piece;
    TUTTI_TRY(tutti__device_open(names[0], &device));
    for (size_t i = 0; tutti__state_at(engine->state, i); i++) {
        tutti_state_variable *variable = tutti__state_at(engine->state, i);
        if (variable->pieces.count == 0)
            continue;
        TUTTI_TRY(
            tutti__state_piece(engine->state, variable, device->name, device->memory, &piece));
        tutti__state_keep(engine->state, variable, count, names);
    }
    return TUTTI_OK;
}

/* Under the lock. */
static void forget_programs(tutti_engine *engine)
{
    tutti__cache_free(&engine->cache);
    engine->cache = (tutti_plan_cache){0};
    tutti__plan_release(engine->last);
    engine->last = NULL;
}

tutti_status tutti__engine_gather(tutti_engine *engine)
{
    tutti_strategy *strategy = engine->options.strategy;
    if (!strategy || tutti_strategy_workers(strategy) > 1)
        return strategy ? tutti_fail(TUTTI_INVALID, "the variables of several processes stay there")
                        : TUTTI_OK;
    pthread_mutex_lock(&engine->lock);
    forget_programs(engine);
    engine->options.strategy = NULL;
    pthread_mutex_unlock(&engine->lock);
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; status == TUTTI_OK && tutti__state_at(engine->state, i); i++) {
        tutti_state_variable *variable = tutti__state_at(engine->state, i);
        tutti_tensor *value = NULL;
        if (variable->pieces.count > 0 && tutti__state_has_value(engine->state, variable->name))
            status = tutti__variable_get(engine->state, variable, &value); /* of all its pieces */
        tutti__state_keep(engine->state, variable, 1, (const char *[]){engine->device});
        if (status == TUTTI_OK && value)
            status = tutti__variable_set(engine->state, variable, value);
        tutti_tensor_release(value);
    }
    tutti_strategy_close(strategy);
    return status;
}

tutti_status tutti__engine_spread(tutti_engine *engine, tutti_strategy *strategy)
{
    if (!strategy || strategy == engine->options.strategy)
        return TUTTI_OK;
    TUTTI_TRY(tutti_strategy_check(strategy));
    if (tutti__strategy_spreads(engine->options.strategy))
        return tutti_fail(
            TUTTI_INVALID, "it is spread by strategy %s already and cannot take another one (%s)",
            tutti_strategy_name(engine->options.strategy), tutti_strategy_name(strategy));
    char *device = strdup(tutti_strategy_device(strategy, 0));
    if (!device)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a session");
    pthread_mutex_lock(&engine->lock);
    tutti_strategy_close(engine->options.strategy);
    engine->options.strategy = tutti__strategy_retain(strategy);
    engine->options.deterministic |= strategy->options.deterministic;
    free(engine->device);
    engine->options.device = engine->device = device;
    forget_programs(engine); /* of one device */
    pthread_mutex_unlock(&engine->lock);
    return move_state(engine, strategy);
}

void tutti__engine_limit(tutti_engine *engine, size_t bytes)
{
    pthread_mutex_lock(&engine->lock);
    engine->options.memory_limit = bytes;
    forget_programs(engine);
    pthread_mutex_unlock(&engine->lock);
}

static tutti_status compile(tutti_engine *engine, tutti_graph *graph, const tutti_ask *request,
                            const tutti_type *types, tutti_plan **ret)
{
    int64_t start = tutti__now_ns();
    TUTTI_TRY(tutti__plan_create(engine, &engine->options, graph, request, types, ret));
    pthread_mutex_lock(&engine->lock);
    engine->compiles++;
    engine->compile_seconds = (double)(tutti__now_ns() - start) * 1e-9;
    tutti__plan_release(engine->last);
    engine->last = tutti__plan_retain(*ret);
    pthread_mutex_unlock(&engine->lock);
    return TUTTI_OK;
}

static tutti_status plan_for(tutti_engine *engine, tutti_graph *graph, const tutti_ask *request,
                             const tutti_type *types, bool *ret_new, tutti_plan **ret)
{
    tutti_key key;
    TUTTI_TRY(tutti__key_write(&key, graph, request, types));
    pthread_mutex_lock(&engine->lock);
    engine->runs++;
    tutti_plan *plan = tutti__cache_find(&engine->cache, &key, engine->runs);
    pthread_mutex_unlock(&engine->lock);
    tutti_status status = TUTTI_OK;
    *ret_new = !plan;
    if (!plan) {
        status = compile(engine, graph, request, types, &plan);
        if (status == TUTTI_OK) {
            pthread_mutex_lock(&engine->lock);
            tutti__cache_keep(&engine->cache, (size_t)engine->options.cache_limit, &key, plan,
                              engine->runs);
            pthread_mutex_unlock(&engine->lock);
        }
    }
    tutti__key_free(&key);
    if (status == TUTTI_OK)
        *ret = plan;
    return status;
}

static tutti_status call_graph(tutti_run *run, const tutti_device *device, tutti_graph *body,
                               int input_count, tutti_tensor *const *inputs,
                               tutti_tensor **ret_results);

/* Runs the rest of a graph whose shapes are known now, fed with what the first segment gave. */
static tutti_status run_rest(tutti_engine *engine, const tutti_plan *plan, const tutti_ask *request,
                             tutti_tensor *const *results, tutti_tensor **ret_values)
{
    tutti_tensor **fetched = calloc((size_t)plan->rest_fetch_count + 1, sizeof *fetched);
    if (!fetched)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    tutti_ask rest = {.feed_count = plan->rest_feed_count,
                      .feeds = plan->rest_feeds,
                      .values = results,
                      .fetch_count = plan->rest_fetch_count,
                      .fetches = plan->rest_fetches,
                      .target_count = plan->rest_target_count,
                      .targets = plan->rest_targets,
                      .deadline = request->deadline,
                      .device = request->device,
                      .batch = request->batch,
                      .counts = request->counts,
                      .count_count = request->count_count,
                      .spread_already = true,
                      .watched = request->watched};
    tutti_status status = tutti__engine_run(engine, plan->rest, &rest, fetched);
    for (int i = 0; status == TUTTI_OK && i < plan->fetch_count; i++) {
        int from = plan->fetches[i];
        ret_values[i] = tutti_tensor_retain(from >= 0 ? results[from] : fetched[~from]);
    }
    for (int i = 0; status == TUTTI_OK && i < plan->rest_fetch_count; i++)
        tutti_tensor_release(fetched[i]);
    free(fetched);
    return status;
}

static tutti_run new_run(tutti_engine *engine)
{
    return (tutti_run){.id = atomic_fetch_add(&engine->next_run, 1),
                       .state = engine->state,
                       .owner = engine,
                       .call_graph = call_graph,
                       .team = engine->options.strategy ? engine->options.strategy->team : NULL,
                       .mesh = engine->options.mesh.axis_count ? &engine->options.mesh : NULL};
}

static tutti_status run_plan(tutti_engine *engine, const tutti_plan *plan, const tutti_ask *request,
                             tutti_tensor *const *values, tutti_tensor **ret_values)
{
    tutti_run run = new_run(engine);
    /* With several pieces the own flag comes first: it ends what waits for a piece that failed. */
    run.watched = request->watched && plan->piece_count == 1 ? request->watched : &run.cancelled;
    run.deadline =
        request->deadline ? request->deadline : tutti__now_ns() + engine->options.deadline_ns;
    if (!plan->rest)
        return tutti__plan_run(plan, &run, values, ret_values);
    tutti_tensor **results = calloc((size_t)plan->result_count + 1, sizeof *results);
    if (!results)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    tutti_status status = tutti__plan_run(plan, &run, values, results);
    if (status == TUTTI_OK) {
        tutti_ask with_deadline = *request;
        with_deadline.deadline = run.deadline;
        status = run_rest(engine, plan, &with_deadline, results, ret_values);
        for (int i = 0; i < plan->result_count; i++)
            tutti_tensor_release(results[i]);
    }
    free(results);
    return status;
}

void tutti__engine_own_rows(const tutti_engine *engine, tutti_ask *ask)
{
    const tutti_strategy *strategy = engine->options.strategy;
    if (tutti_strategy_workers(strategy) == 1 || !strategy->counts)
        return;
    ask->batch = strategy->counted;
    ask->counts = strategy->counts;
    ask->count_count = tutti_strategy_workers(strategy);
}

typedef struct operands {
    tutti_type types[16];
    tutti_tensor *values[16];
    tutti_type *all_types;
    tutti_tensor **all_values;
} operands;

/* Of a feed that holds the whole batch: the rows of this process. *ret_batch: of the batch. */
static tutti_status take_rows(tutti_engine *engine, const tutti_ask *request, int i,
                              int64_t *ret_batch, tutti_tensor **ret)
{
    tutti_tensor *value = request->values[i];
    tutti_strategy *strategy = engine->options.strategy;
    bool cuts = request->batch == 0 && !request->spread_already && !request->device &&
                tutti_strategy_workers(strategy) > 1 && tutti_tensor_rank(value) > 0 &&
                tutti__is_batch(request->feeds[i].node, request->feeds[i].index);
    if (!cuts)
        return tutti_tensor_contiguous(value, ret);
    int64_t first, rows;
    tutti_tensor *part;
    *ret_batch = tutti_tensor_dims(value)[0];
    tutti_spread spread = tutti__strategy_spread(strategy, *ret_batch);
    tutti__spread_own(&spread, *ret_batch, &first, &rows);
    TUTTI_TRY(tutti_tensor_slice(value, 0, first, rows, 1, &part));
    tutti_status status = tutti_tensor_contiguous(part, ret);
    tutti_tensor_release(part);
    return status;
}

/* With `rehearsal` it is rehearsed in place of being run. */
static tutti_status run_contiguous(tutti_engine *engine, tutti_graph *graph, const tutti_ask *asked,
                                   operands *o, tutti_rehearsal *rehearsal,
                                   tutti_tensor **ret_values)
{
    tutti_ask own = *asked, *request = &own;
    for (int i = 0; i < request->feed_count; i++) {
        TUTTI_TRY(take_rows(engine, asked, i, &own.batch, &o->all_values[i]));
        o->all_types[i] = *tutti_tensor_type(o->all_values[i]);
    }
    tutti_plan *plan;
    bool is_new;
    TUTTI_TRY(plan_for(engine, graph, request, o->all_types, &is_new, &plan));
    tutti_status status = TUTTI_OK;
    if (rehearsal || (is_new && engine->watch.made)) {
        tutti_run run = new_run(engine);
        if (rehearsal)
            status = tutti__plan_rehearse(plan, &run, o->all_values, rehearsal);
        else
            engine->watch.made(engine->watch.context,
                               &(tutti_made){plan, &run, o->all_values, graph, asked});
    }
    if (!rehearsal)
        status = run_plan(engine, plan, request, o->all_values, ret_values);
    tutti__plan_release(plan);
    return status;
}

static tutti_status run_or_rehearse(tutti_engine *engine, tutti_graph *graph,
                                    const tutti_ask *request, tutti_rehearsal *rehearsal,
                                    tutti_tensor **ret_values)
{
    operands o;
    size_t count = (size_t)request->feed_count;
    o.all_types = o.types;
    o.all_values = o.values;
    if (count > 16) {
        o.all_types = malloc(count * sizeof *o.all_types);
        o.all_values = malloc(count * sizeof *o.all_values);
    }
    tutti_status status = TUTTI_OK;
    if (!o.all_types || !o.all_values) {
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu feeds", count);
    } else {
        memset(o.all_values, 0, count * sizeof *o.all_values);
        status = run_contiguous(engine, graph, request, &o, rehearsal, ret_values);
        for (size_t i = 0; i < count; i++)
            tutti_tensor_release(o.all_values[i]);
    }
    if (count > 16) {
        free(o.all_types);
        free(o.all_values);
    }
    return status;
}

tutti_status tutti__engine_run(tutti_engine *engine, tutti_graph *graph, const tutti_ask *request,
                               tutti_tensor **ret_values)
{
    return run_or_rehearse(engine, graph, request, NULL, ret_values);
}

tutti_status tutti__engine_rehearse(tutti_engine *engine, tutti_graph *graph,
                                    const tutti_ask *request, tutti_rehearsal *ret)
{
    return run_or_rehearse(engine, graph, request, ret, NULL);
}

void tutti__engine_set_watch(tutti_engine *engine, const tutti_engine_watch *watch)
{
    engine->watch = *watch;
}

bool tutti__engine_imagines(const tutti_engine *engine)
{
    return engine->watch.imagines;
}

/* Sub-graphs run through the same cache: the graph is the body, its parameters are the feeds. */
static tutti_status call_graph(tutti_run *run, const tutti_device *device, tutti_graph *body,
                               int input_count, tutti_tensor *const *inputs,
                               tutti_tensor **ret_results)
{
    tutti_edge few[32], *feeds = few;
    tutti_tensor *few_values[32], **values = few_values;
    if (input_count > 32) {
        feeds = malloc((size_t)input_count * sizeof *feeds);
        values = malloc((size_t)input_count * sizeof *values);
    }
    tutti_status status =
        feeds && values ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory to call a sub-graph");
    int count = 0;
    for (size_t i = 0; status == TUTTI_OK && i < body->nodes.count; i++) {
        tutti_node *node = body->nodes.data[i];
        int64_t index = tutti__is(node, "parameter") ? tutti__int(node, "index") : -1;
        if (node->op->flags & TUTTI_OP_UPDATES)
            status = tutti_fail(
                TUTTI_UNSUPPORTED,
                "%s '%s' writes a variable inside cond or while; return the value and assign it outside",
                node->op->name, node->name);
        if (index >= 0 && index < input_count) {
            feeds[count] = (tutti_edge){node, 0};
            values[count++] = inputs[index];
        }
    }
    tutti_ask request = {.feed_count = count,
                         .feeds = feeds,
                         .values = values,
                         .deadline = run->deadline,
                         .watched = run->watched,
                         .fetch_count = (int)body->results.count,
                         .fetches = body->results.data,
                         .spread_already = true,
                         .device = device->name};
    if (status == TUTTI_OK)
        status = tutti__engine_run(run->owner, body, &request, ret_results);
    if (feeds != few)
        free(feeds);
    if (values != few_values)
        free(values);
    return status;
}

void tutti__engine_stats(tutti_engine *engine, tutti_engine_stats *ret)
{
    pthread_mutex_lock(&engine->lock);
    const tutti_plan *last = engine->last;
    *ret = (tutti_engine_stats){.runs = engine->runs,
                                .compiles = engine->compiles,
                                .cached = engine->cache.entries.count,
                                .compile_seconds = engine->compile_seconds,
                                .arena_bytes = last ? last->arena_bytes : 0,
                                .arena_bound = last ? last->arena_bound : 0,
                                .flops = last ? last->flops : 0,
                                .recomputed_flops = last ? last->recomputed_flops : 0};
    memcpy(ret->note, last ? last->note : "", last ? sizeof ret->note : 1);
    pthread_mutex_unlock(&engine->lock);
}

tutti_plan *tutti__engine_last(tutti_engine *engine)
{
    pthread_mutex_lock(&engine->lock);
    tutti_plan *plan = engine->last ? tutti__plan_retain(engine->last) : NULL;
    pthread_mutex_unlock(&engine->lock);
    return plan;
}

void tutti__engine_print(tutti_engine *engine, tutti_text *text)
{
    pthread_mutex_lock(&engine->lock);
    for (int i = 0; engine->last && i < engine->last->piece_count; i++) {
        const tutti_executable *executable = engine->last->pieces[i].executable;
        if (executable->table->print)
            executable->table->print(executable, text);
    }
    pthread_mutex_unlock(&engine->lock);
}
