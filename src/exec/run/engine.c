/* engine.c: what an engine holds: options, state, the cache of plans. */
#include "exec/run/engine_inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/world.h"
#include "exec/plan/cache.h"

static const tutti_param device_param =
    TUTTI_PARAM("DEVICE", "cpu:0",
                "where nodes go that have no wish, in sessions and tapes that name no device");

/* Without a wish the strategy's first device; of one that could not be made there is none. */
static const char *device_of(const tutti_engine_options *options)
{
    const char *device =
        options->device ? options->device : tutti_strategy_device(options->strategy, 0);
    return device ? device : tutti__param_text(&device_param);
}

/* Variables on servers have names of each engine's own. */
static void number_engine(tutti_engine *engine)
{
    tutti_strategy *s = engine->options.strategy;
    if (s && s->servers && !engine->options.mesh)
        engine->server_number = 1 + atomic_fetch_add(&s->server_states, 1);
}

static tutti_status share_state(tutti_state *state, const tutti_engine_options *options)
{
    const tutti_strategy *strategy = options->strategy;
    int workers = tutti__strategy_processes(strategy);
    if (options->mesh)
        return TUTTI_OK; /* each process has its own values */
    tutti__state_mirror(state, tutti__strategy_rewrites(strategy) && !strategy->kind->pipeline);
    if (strategy && strategy->options.compression && tutti__strategy_meeting_replicas(strategy) > 1)
        tutti__state_compress(state, workers > 1 ? workers : tutti_strategy_local(strategy),
                              workers > 1 ? tutti_strategy_rank(strategy) : 0);
    if (strategy && strategy->kind->pipeline)
        return TUTTI_OK; /* each process has the values of its stages */
    if (workers > 1)
        tutti__state_share(state, tutti_strategy_rank(strategy) == 0);
    return workers > 1 && strategy->groups ? tutti__axis_groups_add_state(strategy->groups, state)
                                           : TUTTI_OK;
}

/* A wish may be "" or "/job:ps/task:1"; nodes go to the device that was opened for it. */
static tutti_status take_name(tutti_engine *engine, const tutti_device *device)
{
    char *name = strdup(device->name);
    if (!name)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a session");
    free(engine->device);
    engine->options.device = engine->device = name;
    return TUTTI_OK;
}

/* Of the session's mesh: processes have the same, or none of them opens it. */
static tutti_status make_groups(tutti_engine *engine)
{
    const tutti_strategy *strategy = engine->options.strategy;
    tutti_comm *world = strategy && strategy->axis_group ? strategy->axis_group->world : NULL;
    const tutti_cluster *cluster = strategy ? tutti__strategy_cluster(strategy) : NULL;
    tutti_axis_groups *groups;
    TUTTI_TRY(tutti__axis_groups_create(engine->options.mesh, world, false, cluster, &groups));
    engine->options.groups = groups;
    groups->deterministic = engine->options.deterministic;
    return tutti__axis_groups_compare(groups);
}

tutti_status tutti__engine_create(const tutti_engine_options *options, tutti_engine **ret)
{
    tutti_engine *engine = calloc(1, sizeof *engine);
    if (!engine) {
        tutti__mesh_destroy(options->mesh);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a session");
    }
    engine->options = *options;
    engine->device = strdup(device_of(options));
    engine->options.device = engine->device;
    if (options->strategy)
        engine->options.deterministic |= options->strategy->options.deterministic;
    if (engine->options.cache_limit <= 0)
        engine->options.cache_limit = 128;
    if (engine->options.deadline_ns <= 0)
        engine->options.deadline_ns = 300 * (int64_t)1000000000;
    pthread_mutex_init(&engine->lock, NULL);
    tutti__strategy_retain(options->strategy);
    tutti_status status = engine->device ? tutti__state_create(&engine->state)
                                         : tutti_fail(TUTTI_NO_MEMORY, "no memory for a session");
    if (status == TUTTI_OK && tutti__strategy_processes(options->strategy) > 1)
        tutti__state_leave_queues(engine->state);
    if (status == TUTTI_OK)
        status = share_state(engine->state, options);
    if (status == TUTTI_OK && options->mesh)
        status = make_groups(engine);
    tutti_device *device;
    number_engine(engine);
    if (status == TUTTI_OK)
        status = tutti__device_open(engine->device, &device);
    if (status == TUTTI_OK)
        status = take_name(engine, device);
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
    if (!engine->options.mesh && engine->options.strategy && engine->options.strategy->groups)
        tutti__axis_groups_remove_state(engine->options.strategy->groups, engine->state);
    tutti__cache_free(&engine->cache);
    tutti__plan_release(engine->last);
    tutti__state_destroy(engine->state);
    tutti__axis_groups_close(engine->options.groups);
    tutti_strategy_close(engine->options.strategy);
    pthread_mutex_destroy(&engine->lock);
    tutti__mesh_destroy(engine->options.mesh);
    free(engine->device);
    free(engine);
}

tutti_state *tutti__engine_state(tutti_engine *engine)
{
    return engine->state;
}

const char *tutti__engine_device(const tutti_engine *engine)
{
    return engine->device;
}

tutti_strategy *tutti__engine_strategy(const tutti_engine *engine)
{
    return engine->options.strategy;
}

/* Values leave their devices and wait for the programs to come, which may want them elsewhere. */
static tutti_status lift_state(tutti_state *state)
{
    tutti_state_variable *variable;
    for (size_t i = 0; (variable = tutti__state_at(state, i)) != NULL; i++) {
        tutti_tensor *value = NULL;
        if (variable->pieces.count == 0)
            continue;
        if (tutti__state_has_value(state, variable->name))
            TUTTI_TRY(tutti__variable_get(state, variable, &value)); /* of all its pieces */
        tutti__state_keep(state, variable, 0, NULL);
        tutti_status status = value ? tutti__variable_set(state, variable, value) : TUTTI_OK;
        tutti_tensor_release(value);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
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
    if (!strategy || tutti__strategy_processes(strategy) > 1)
        return strategy ? tutti_fail(TUTTI_INVALID, "the variables of several processes stay there")
                        : TUTTI_OK;
    pthread_mutex_lock(&engine->lock);
    forget_programs(engine);
    engine->options.strategy = NULL;
    pthread_mutex_unlock(&engine->lock);
    tutti__state_mirror(engine->state, false);
    tutti_status status = lift_state(engine->state);
    tutti_strategy_close(strategy);
    return status;
}

tutti_status tutti__engine_set_strategy(tutti_engine *engine, tutti_strategy *strategy)
{
    if (!strategy || strategy == engine->options.strategy)
        return TUTTI_OK;
    TUTTI_TRY(tutti_strategy_check(strategy));
    if (tutti__strategy_rewrites(engine->options.strategy))
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
    number_engine(engine);
    pthread_mutex_unlock(&engine->lock);
    TUTTI_TRY(share_state(engine->state, &engine->options));
    bool copies = tutti__strategy_rewrites(strategy) && !strategy->kind->pipeline;
    return copies ? move_state(engine, strategy) : lift_state(engine->state);
}

void tutti__engine_limit(tutti_engine *engine, size_t bytes)
{
    pthread_mutex_lock(&engine->lock);
    engine->options.memory_limit = bytes;
    forget_programs(engine);
    pthread_mutex_unlock(&engine->lock);
}

static tutti_status compile(tutti_engine *engine, tutti_graph *graph,
                            const tutti_run_request *request, const tutti_type *types,
                            tutti_plan **ret)
{
    int64_t start = tutti__now_ns();
    TUTTI_TRY(tutti__plan_create(engine, &engine->options, graph, request, types, ret));
    pthread_mutex_lock(&engine->lock);
    engine->compiles++;
    engine->compile_seconds = (double)(tutti__now_ns() - start) * 1e-9;
    if (!request->watched) { /* a run's own program, not a branch inside of one */
        tutti__plan_release(engine->last);
        engine->last = tutti__plan_retain(*ret);
    }
    pthread_mutex_unlock(&engine->lock);
    return TUTTI_OK;
}

/* Under the lock; NULL: there is no memory for one. */
static tutti_plan_cache *cache_for(tutti_engine *engine, const tutti_graph *graph,
                                   const tutti_run_request *request)
{
    return request->inside ? tutti__bodies_cache(request->inside, graph) : &engine->cache;
}

static size_t limit_of(const tutti_engine *engine, const tutti_run_request *request)
{
    return (size_t)engine->options.cache_limit * (request->inside ? TUTTI_BODY_SHAPES : 1);
}

tutti_status tutti__engine_plan_for(tutti_engine *engine, tutti_graph *graph,
                                    const tutti_run_request *request, const tutti_type *types,
                                    bool *ret_new, tutti_plan **ret)
{
    tutti_key key;
    TUTTI_TRY(tutti__key_write(&key, graph, request, types));
    pthread_mutex_lock(&engine->lock);
    tutti_plan_cache *cache = cache_for(engine, graph, request);
    tutti_plan *plan = cache ? tutti__cache_find(cache, &key, ++engine->lookups) : NULL;
    pthread_mutex_unlock(&engine->lock);
    tutti_status status = TUTTI_OK;
    *ret_new = !plan;
    if (!plan) {
        status = compile(engine, graph, request, types, &plan);
        if (status == TUTTI_OK) {
            pthread_mutex_lock(&engine->lock);
            tutti__cache_forget(&engine->cache, request->constants);
            cache = cache_for(engine, graph, request);
            if (cache)
                tutti__cache_keep(cache, limit_of(engine, request), &key, plan, engine->lookups);
            pthread_mutex_unlock(&engine->lock);
        }
    }
    tutti__key_free(&key);
    if (status == TUTTI_OK)
        *ret = plan;
    return status;
}

void tutti__engine_set_watch(tutti_engine *engine, const tutti_engine_watch *watch)
{
    engine->watch = *watch;
}

bool tutti__engine_imagines(const tutti_engine *engine)
{
    return engine->watch.imagines;
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
