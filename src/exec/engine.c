/* engine.c: the cache of plans, and runs through it. */
#include "exec/engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/world.h"
#include "exec/plan.h"

static const tutti_param device_param =
    TUTTI_PARAM("DEVICE", "cpu:0",
                "where nodes go that have no wish, in sessions and tapes that name no device");

/* Everything a plan depends on, as words; compared whole. */
typedef struct key {
    uint64_t hash;
    size_t count;
    uint64_t *words;
} key;

typedef struct entry {
    key key;
    tutti_plan *plan;
    uint64_t used; /* when last, in runs */
} entry;

struct tutti_engine {
    tutti_engine_options options;
    char *device;
    tutti_state *state;
    pthread_mutex_t lock;
    TUTTI_VEC(entry) entries;
    tutti_plan *last; /* compiled last, for print */
    uint64_t runs, compiles;
    double compile_seconds;
    _Atomic uint64_t next_run;
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
    tutti_status status = engine->device ? tutti__state_create(&engine->state) : TUTTI_NO_MEMORY;
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
    for (size_t i = 0; i < engine->entries.count; i++) {
        tutti__plan_release(engine->entries.data[i].plan);
        free(engine->entries.data[i].key.words);
    }
    TUTTI_VEC_FREE(&engine->entries);
    tutti__plan_release(engine->last);
    tutti__state_destroy(engine->state);
    pthread_mutex_destroy(&engine->lock);
    free(engine->device);
    free(engine);
}

tutti_state *tutti__engine_state(tutti_engine *engine)
{
    return engine->state;
}

/* The key of a request, written into a buffer that the caller gives (from malloc when too small).
 */
#define KEY_WORDS 128
typedef struct key_writer {
    uint64_t *words;
    size_t count, capacity;
    uint64_t inlined[KEY_WORDS];
    bool failed;
} key_writer;

static void put(key_writer *w, uint64_t word)
{
    if (w->count == w->capacity) {
        uint64_t *words = malloc(2 * w->capacity * sizeof *words);
        if (!words) {
            w->failed = true;
            return;
        }
        memcpy(words, w->words, w->count * sizeof *words);
        if (w->words != w->inlined)
            free(w->words);
        w->words = words;
        w->capacity *= 2;
    }
    w->words[w->count++] = word;
}

static void put_edge(key_writer *w, tutti_edge edge)
{
    put(w, (uint64_t)edge.node->id << 16 | edge.index);
}

static void write_key(key_writer *w, const tutti_graph *graph, const tutti_request *request,
                      const tutti_type *types)
{
    w->words = w->inlined;
    w->count = 0;
    w->capacity = KEY_WORDS;
    w->failed = false;
    put(w, request->key ? request->key : graph->serial);
    put(w, request->key ? 0 : graph->version);
    put(w, request->device ? tutti__hash_string(0, request->device) : 0);
    put(w, (uint64_t)request->feed_count << 40 | (uint64_t)request->fetch_count << 20 |
               (uint64_t)request->target_count);
    for (int i = 0; i < request->feed_count; i++) {
        put_edge(w, request->feeds[i]);
        put(w, (uint64_t)types[i].dtype << 8 | (uint64_t)types[i].rank);
        for (int d = 0; d < types[i].rank; d++)
            put(w, (uint64_t)types[i].dims[d]);
    }
    for (int i = 0; i < request->fetch_count; i++)
        put_edge(w, request->fetches[i]);
    for (int i = 0; i < request->target_count; i++)
        put(w, request->targets[i]->id);
}

/* Under the lock. */
static tutti_plan *find(tutti_engine *engine, const key_writer *w, uint64_t hash)
{
    for (size_t i = 0; i < engine->entries.count; i++) {
        entry *e = &engine->entries.data[i];
        if (e->key.hash == hash && e->key.count == w->count &&
            memcmp(e->key.words, w->words, w->count * sizeof *w->words) == 0) {
            e->used = engine->runs;
            return tutti__plan_retain(e->plan);
        }
    }
    return NULL;
}

/* Under the lock: the least recently used entry goes when the cache is full. Another thread may
 * have kept a plan for the same request meanwhile. */
static void keep(tutti_engine *engine, const key_writer *w, uint64_t hash, tutti_plan *plan)
{
    tutti_plan *other = find(engine, w, hash);
    if (other) {
        tutti__plan_release(other);
        return;
    }
    entry e = {.key = {hash, w->count, malloc(w->count * sizeof *w->words)},
               .plan = plan,
               .used = engine->runs};
    if (!e.key.words)
        return;
    memcpy(e.key.words, w->words, w->count * sizeof *w->words);
    if (engine->entries.count >= (size_t)engine->options.cache_limit) {
        size_t oldest = 0;
        for (size_t i = 1; i < engine->entries.count; i++)
            if (engine->entries.data[i].used < engine->entries.data[oldest].used)
                oldest = i;
        tutti__plan_release(engine->entries.data[oldest].plan);
        free(engine->entries.data[oldest].key.words);
        engine->entries.data[oldest] = engine->entries.data[--engine->entries.count];
    }
    if (TUTTI_VEC_PUSH(&engine->entries, e))
        tutti__plan_retain(plan);
    else
        free(e.key.words);
}

static tutti_status compile(tutti_engine *engine, tutti_graph *graph, const tutti_request *request,
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

static tutti_status plan_for(tutti_engine *engine, tutti_graph *graph, const tutti_request *request,
                             const tutti_type *types, tutti_plan **ret)
{
    key_writer w;
    write_key(&w, graph, request, types);
    if (w.failed)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    uint64_t hash = tutti__hash_bytes(0, w.words, w.count * sizeof *w.words);
    pthread_mutex_lock(&engine->lock);
    engine->runs++;
    tutti_plan *plan = find(engine, &w, hash);
    pthread_mutex_unlock(&engine->lock);
    tutti_status status = TUTTI_OK;
    if (!plan) {
        status = compile(engine, graph, request, types, &plan);
        if (status == TUTTI_OK) {
            pthread_mutex_lock(&engine->lock);
            keep(engine, &w, hash, plan);
            pthread_mutex_unlock(&engine->lock);
        }
    }
    if (w.words != w.inlined)
        free(w.words);
    if (status == TUTTI_OK)
        *ret = plan;
    return status;
}

static tutti_status call_graph(tutti_run *run, const tutti_device *device, tutti_graph *body,
                               int input_count, tutti_tensor *const *inputs,
                               tutti_tensor **ret_results);

/* Runs the rest of a graph whose shapes are known now, fed with what the first segment gave. */
static tutti_status run_rest(tutti_engine *engine, const tutti_plan *plan,
                             const tutti_request *request, tutti_tensor *const *results,
                             tutti_tensor **ret_values)
{
    tutti_tensor **fetched = calloc((size_t)plan->rest_fetch_count + 1, sizeof *fetched);
    if (!fetched)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    tutti_request rest = {.feed_count = plan->rest_feed_count,
                          .feeds = plan->rest_feeds,
                          .values = results,
                          .fetch_count = plan->rest_fetch_count,
                          .fetches = plan->rest_fetches,
                          .target_count = plan->rest_target_count,
                          .targets = plan->rest_targets,
                          .deadline = request->deadline,
                          .device = request->device};
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

static tutti_status run_plan(tutti_engine *engine, const tutti_plan *plan,
                             const tutti_request *request, tutti_tensor *const *values,
                             tutti_tensor **ret_values)
{
    tutti_run run = {.id = atomic_fetch_add(&engine->next_run, 1),
                     .state = engine->state,
                     .owner = engine,
                     .call_graph = call_graph,
                     .mesh = engine->options.mesh.axis_count ? &engine->options.mesh : NULL};
    run.deadline =
        request->deadline ? request->deadline : tutti__now_ns() + engine->options.deadline_ns;
    if (!plan->rest)
        return tutti__plan_run(plan, &run, values, ret_values);
    tutti_tensor **results = calloc((size_t)plan->result_count + 1, sizeof *results);
    if (!results)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    tutti_status status = tutti__plan_run(plan, &run, values, results);
    if (status == TUTTI_OK) {
        tutti_request with_deadline = *request;
        with_deadline.deadline = run.deadline;
        status = run_rest(engine, plan, &with_deadline, results, ret_values);
        for (int i = 0; i < plan->result_count; i++)
            tutti_tensor_release(results[i]);
    }
    free(results);
    return status;
}

typedef struct operands {
    tutti_type types[16];
    tutti_tensor *values[16];
    tutti_type *all_types;
    tutti_tensor **all_values;
} operands;

static tutti_status run_contiguous(tutti_engine *engine, tutti_graph *graph,
                                   const tutti_request *request, operands *o,
                                   tutti_tensor **ret_values)
{
    for (int i = 0; i < request->feed_count; i++) {
        o->all_types[i] = *tutti_tensor_type(request->values[i]);
        TUTTI_TRY(tutti_tensor_contiguous(request->values[i], &o->all_values[i]));
    }
    tutti_plan *plan;
    TUTTI_TRY(plan_for(engine, graph, request, o->all_types, &plan));
    tutti_status status = run_plan(engine, plan, request, o->all_values, ret_values);
    tutti__plan_release(plan);
    return status;
}

tutti_status tutti__engine_run(tutti_engine *engine, tutti_graph *graph,
                               const tutti_request *request, tutti_tensor **ret_values)
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
        status = run_contiguous(engine, graph, request, &o, ret_values);
        for (size_t i = 0; i < count; i++)
            tutti_tensor_release(o.all_values[i]);
    }
    if (count > 16) {
        free(o.all_types);
        free(o.all_values);
    }
    return status;
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
    tutti_request request = {.feed_count = count,
                             .feeds = feeds,
                             .values = values,
                             .deadline = run->deadline,
                             .fetch_count = (int)body->results.count,
                             .fetches = body->results.data,
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
    *ret = (tutti_engine_stats){.runs = engine->runs,
                                .compiles = engine->compiles,
                                .cached = engine->entries.count,
                                .compile_seconds = engine->compile_seconds,
                                .arena_bytes = engine->last ? engine->last->arena_bytes : 0};
    pthread_mutex_unlock(&engine->lock);
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
