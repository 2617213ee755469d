/* plan.c: extract, specialise, rewrite, cut, place, partition, compile. */
#include "exec/plan/plan.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/pointers.h"
#include "exec/plan/cache.h"
#include "exec/plan/fed_rows.h"
#include "exec/plan/meetings.h"
#include "exec/plan/segment.h"
#include "program/program.h"

static tutti_status add_updated(tutti_plan *plan, tutti_pointers *known, tutti_state *state,
                                const tutti_node *node)
{
    tutti_state_variable *variable;
    TUTTI_TRY(tutti__node_variable(state, node, &variable));
    if (tutti__pointers_get(known, variable) >= 0)
        return TUTTI_OK;
    return tutti__pointers_add(known, variable, 0) && TUTTI_VEC_PUSH(&plan->updated, variable)
               ? TUTTI_OK
               : tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
}

/* `known`: those of plan->updated. */
static tutti_status find_updated(tutti_plan *plan, tutti_pointers *known, tutti_state *state,
                                 const tutti_graph *graph)
{
    for (size_t n = 0; n < graph->nodes.count; n++) {
        const tutti_node *node = graph->nodes.data[n];
        for (int i = 0; (node->op->flags & TUTTI_OP_UPDATES) && i < node->input_count; i++)
            if (tutti__is(node->inputs[i].node, "variable"))
                TUTTI_TRY(add_updated(plan, known, state, node->inputs[i].node));
    }
    return TUTTI_OK;
}

/* What is computed again, for those who ask; most graphs have nothing of the kind. */
static void count_flops(tutti_plan *plan, const tutti_graph *graph)
{
    double again = 0, all = 0;
    bool any = false;
    for (size_t n = 0; n < graph->nodes.count && !any; n++)
        any = graph->nodes.data[n]->recomputed;
    if (any)
        all = tutti__graph_flops(graph, &again);
    plan->flops += all;
    plan->recomputed_flops += again;
}

/* Runs without gradients (first values, predictions) keep nothing for them: no limit holds. */
static bool has_gradients(const tutti_graph *graph)
{
    for (size_t n = 0; n < graph->nodes.count; n++)
        if (graph->nodes.data[n]->backward)
            return true;
    return false;
}

static tutti_status lower(const tutti_engine_options *options, const tutti_partition *partition,
                          tutti_plan_piece *piece, tutti_plan *plan)
{
    tutti_graph *graph = NULL;
    if (options->memory_limit == 0 || options->keeps_all || !has_gradients(partition->graph)) {
        count_flops(plan, partition->graph);
        return piece->device->target->compile(piece->device, partition, &piece->executable);
    }
    TUTTI_TRY(tutti__compile_within(piece->device, partition, options->memory_limit,
                                    &piece->executable, &graph, plan->note));
    count_flops(plan, graph);
    tutti_graph_destroy(graph);
    return TUTTI_OK;
}

static tutti_status rewrite_piece(const tutti_engine_options *options, tutti_piece_graph *from,
                                  tutti_plan_piece *piece)
{
    TUTTI_TRY(tutti__device_open(from->device, &piece->device));
    TUTTI_TRY(tutti__fed_rows_find(from));
    tutti_pass_context context = {.device = piece->device,
                                  .deterministic = options->deterministic,
                                  .keeps_all = options->keeps_all || options->memory_limit > 0};
    return tutti__passes_run(TUTTI_PASS_PARTITION, from->graph, &context, from->device);
}

static tutti_status compile_piece(tutti_engine *engine, const tutti_engine_options *options,
                                  tutti_piece_graph *from, tutti_plan_piece *piece,
                                  tutti_plan *plan)
{
    tutti_partition partition = {
        .graph = from->graph,
        .state = tutti__engine_state(engine),
        .deterministic = options->deterministic,
        .shared = options->strategy ? tutti__strategy_memory(options->strategy) : NULL,
        .shadows = from->shadows};
    TUTTI_TRY(lower(options, &partition, piece, plan));
    piece->parameter_count = from->parameter_count;
    piece->result_count = from->result_count;
    piece->parameters = from->parameters;
    piece->results = from->results;
    piece->rows = from->rows;
    from->parameters = from->results = NULL;
    from->rows = NULL;
    return TUTTI_OK;
}

/* One send and one recv of a channel in a step: who would get which of two values is chance. */
static tutti_status check_channel(const tutti_node *node, const char *op, tutti_map *seen)
{
    if (node->dead || !tutti__is(node, op))
        return TUTTI_OK;
    char places[2][TUTTI_PLACE_TEXT];
    const char *channel = tutti__str(node, "channel");
    const tutti_node *other = tutti__map_get(seen, channel);
    if (other)
        return tutti_fail(TUTTI_INVALID,
                          "%s '%s'%s and '%s'%s use the same channel '%s' in one step; "
                          "give each a channel of its own",
                          op, other->name, tutti__node_place(other, places[0]), node->name,
                          tutti__node_place(node, places[1]), channel);
    return tutti__map_set(seen, channel, (void *)(uintptr_t)node);
}

static tutti_status check_channels(const tutti_graph *graph)
{
    tutti_map sends = {0}, recvs = {0};
    tutti_status status = TUTTI_OK;
    for (size_t n = 0; status == TUTTI_OK && n < graph->nodes.count; n++) {
        status = check_channel(graph->nodes.data[n], "send", &sends);
        if (status == TUTTI_OK)
            status = check_channel(graph->nodes.data[n], "recv", &recvs);
    }
    tutti__map_free(&sends);
    tutti__map_free(&recvs);
    return status;
}

static void add_memory(tutti_plan *plan, const tutti_executable *executable)
{
    const tutti_executable_table *table = executable->table;
    size_t bytes = table->memory(executable);
    plan->arena_bytes += bytes;
    plan->arena_bound += table->memory_bound ? table->memory_bound(executable) : bytes;
}

static bool is_spread(const tutti_engine_options *options, const tutti_run_request *request)
{
    return !request->rewritten_already && !request->device && tutti__engine_rewrites(options);
}

static tutti_status compile_pieces(tutti_engine *engine, const tutti_engine_options *options,
                                   const tutti_run_request *request, int64_t batch,
                                   tutti_graph *graph, tutti_plan *plan)
{
    int count;
    tutti_piece_graph *pieces;
    tutti_pointers known = {0};
    TUTTI_TRY(check_channels(graph));
    if (!request->device)
        TUTTI_TRY(tutti__plan_name_channels(options, graph));
    bool spans = is_spread(options, request) && tutti__strategy_spans(options->strategy);
    if (spans && plan->rest)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "a pipeline of several processes cannot have values whose shapes depend "
                          "on data; use one process");
    TUTTI_TRY(tutti__partition_between(graph, spans ? tutti_strategy_workers(options->strategy) : 0,
                                       spans ? options->strategy->fronts : NULL, &count, &pieces));
    plan->pieces = calloc((size_t)count + 1, sizeof *plan->pieces);
    tutti_status status =
        plan->pieces ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    for (int i = 0; status == TUTTI_OK && i < count; i++)
        status = rewrite_piece(options, &pieces[i], &plan->pieces[i]);
    if (status == TUTTI_OK)
        status = tutti__partition_agree(count, pieces);
    if (status == TUTTI_OK && !request->device)
        status =
            tutti__plan_meetings(options, is_spread(options, request), batch, count, pieces, plan);
    for (int i = 0; status == TUTTI_OK && i < count; i++) {
        status = compile_piece(engine, options, &pieces[i], &plan->pieces[i], plan);
        plan->piece_count = i + 1;
        const tutti_executable *executable = plan->pieces[i].executable;
        if (status == TUTTI_OK)
            status = find_updated(plan, &known, tutti__engine_state(engine), pieces[i].graph);
        plan->shadows = plan->shadows || (status == TUTTI_OK && executable->shadows);
        if (status == TUTTI_OK && executable->table->memory)
            add_memory(plan, executable);
    }
    plan->meets = plan->meets || spans;
    tutti__partition_free(count, pieces);
    tutti__pointers_free(&known);
    if (status == TUTTI_OK && options->strategy)
        status = tutti__limits_check(tutti__engine_state(engine), options->strategy, plan);
    return status;
}

/* Where shapes depend on data, the plan holds the first segment and the rest of the graph. */
static tutti_status plan_cut(tutti_graph *graph, const char *fallback, tutti_plan *plan)
{
    bool *late = calloc(graph->nodes.count + 1, 1);
    if (!late)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    tutti_segment_cut c = {0};
    bool any = false;
    tutti_status status = tutti__segment_find(graph, fallback, &any, late);
    if (status == TUTTI_OK && any)
        status = tutti__segment_cut(graph, late, &c);
    free(late);
    plan->result_count = (int)graph->results.count;
    plan->rest = c.rest;
    plan->rest_feeds = c.feeds;
    plan->rest_feed_count = c.feed_count;
    plan->rest_fetches = c.fetches;
    plan->rest_fetch_count = c.fetch_count;
    plan->rest_targets = c.targets;
    plan->rest_target_count = c.target_count;
    plan->fetches = c.fetch_map;
    return status;
}

/* The job of one device as the job of its strategy's replicas; *graph changes. */
static tutti_status spmd(const tutti_engine_options *options, const tutti_run_request *request,
                         int64_t batch, tutti_graph **graph)
{
    if (!is_spread(options, request))
        return TUTTI_OK;
    tutti_spmd how = tutti__strategy_spmd_own(options->strategy, request->counts, batch);
    tutti_graph *replicas;
    if (options->strategy->kind->pipeline)
        TUTTI_TRY(tutti__pipeline_rewrite(*graph, &how, &options->strategy->pipeline, &replicas));
    else
        TUTTI_TRY(tutti__spmd_rewrite(*graph, &how, &replicas));
    tutti_graph_destroy(*graph);
    *graph = replicas;
    return TUTTI_OK;
}

/* Random numbers need no initialiser: their counter begins with 0. */
static tutti_status begin_counter(tutti_state *state, tutti_state_variable *counter)
{
    tutti_tensor *zero;
    TUTTI_TRY(tutti_tensor_from(TUTTI_I64, 0, NULL, &(int64_t){0}, &zero));
    tutti_status status = tutti__variable_begin(state, counter, zero);
    tutti_tensor_release(zero);
    return status;
}

/* A job whose random numbers are new in every run: it advances their counter, which no update of
 * the user's does. */
static tutti_status rewrite_job(tutti_engine *engine, const tutti_engine_options *options,
                                tutti_graph *graph, tutti_plan *plan)
{
    tutti_pass_context context = {.deterministic = options->deterministic};
    bool users = tutti__random_advanced(graph) != NULL;
    TUTTI_TRY(tutti__passes_run(TUTTI_PASS_JOB, graph, &context, "job"));
    const tutti_node *counter = tutti__random_advanced(graph);
    if (!counter || users)
        return TUTTI_OK;
    TUTTI_TRY(tutti__node_variable(tutti__engine_state(engine), counter, &plan->counter));
    return begin_counter(tutti__engine_state(engine), plan->counter);
}

/* Without a mesh of the user's nothing is cut but the batch, and what marks say of other values
 * would only keep them from being fused. */
static void forget_shardings(const tutti_engine_options *options, const tutti_run_request *request,
                             tutti_graph *graph)
{
    if (is_spread(options, request) && tutti__strategy_has_mesh(options->strategy))
        return;
    for (size_t n = 0; n < graph->nodes.count; n++) {
        tutti_node *node = graph->nodes.data[n];
        bool batch = false;
        for (int i = 0; node->shardings && i < node->output_count; i++)
            batch = batch || tutti__is_batch(node, (uint32_t)i);
        if (!batch)
            node->shardings = NULL;
    }
}

static tutti_status compile(tutti_engine *engine, const tutti_engine_options *options,
                            const tutti_run_request *request, int64_t batch, tutti_graph **graph,
                            tutti_plan *plan)
{
    plan->trains = has_gradients(*graph);
    TUTTI_TRY(tutti__specialize(*graph));
    forget_shardings(options, request, *graph);
    TUTTI_TRY(rewrite_job(engine, options, *graph, plan));
    plan->fetch_count = (int)(*graph)->results.count;
    TUTTI_TRY(spmd(options, request, batch, graph));
    const char *fallback = request->device ? request->device : options->device;
    TUTTI_TRY(plan_cut(*graph, fallback, plan));
    if (is_spread(options, request) && tutti__strategy_spans(options->strategy)) {
        TUTTI_TRY(tutti__place_between(*graph, fallback));
    } else {
        TUTTI_TRY(tutti__plan_check_tasks(options, *graph));
        TUTTI_TRY(tutti__place(*graph, fallback));
    }
    TUTTI_TRY(compile_pieces(engine, options, request, batch, *graph, plan));
    plan->trains = plan->trains && (plan->updated.count > 0 || plan->servers.pushes > 0);
    return TUTTI_OK;
}

/* What the feeds are in the whole job: those cut along the batch have all its rows there. */
static tutti_status whole_types(const tutti_engine_options *options,
                                const tutti_run_request *request, tutti_type *types,
                                int64_t *ret_batch)
{
    int64_t batch = 0, first, rows;
    if (!is_spread(options, request)) {
        *ret_batch = 0;
        return TUTTI_OK;
    }
    for (int i = 0; i < request->feed_count; i++) {
        if (!tutti__is_batch(request->feeds[i].node, request->feeds[i].index) || types[i].rank < 1)
            continue;
        batch = request->batch > 0 ? request->batch : types[i].dims[0];
        tutti_spmd how = tutti__strategy_spmd_own(options->strategy, request->counts, batch);
        tutti__spmd_own_rows(&how, batch, &first, &rows);
        if (types[i].dims[0] != rows)
            return tutti_fail(
                TUTTI_INVALID,
                "'%s' is fed with %lld rows; of a batch of %lld this process has %lld, "
                "from %lld on",
                request->feeds[i].node->name, (long long)types[i].dims[0], (long long)batch,
                (long long)rows, (long long)first);
        types[i].dims[0] = batch;
    }
    *ret_batch = batch;
    return TUTTI_OK;
}

/* A fetched variable is read; in the run's own graph, because others may be compiling the user's.
 */
static tutti_status read_handles(tutti_graph *job)
{
    for (size_t i = 0; i < job->results.count; i++) {
        tutti_edge *edge = &job->results.data[i];
        if (tutti__edge_type(*edge)->handle)
            TUTTI_TRY(tutti__handle_read(job, *edge, edge));
    }
    return TUTTI_OK;
}

static tutti_status create(tutti_engine *engine, const tutti_engine_options *options,
                           tutti_graph *graph, const tutti_run_request *request,
                           const tutti_type *types, int64_t batch, tutti_plan **ret)
{
    tutti_extract wanted = {.feed_count = request->feed_count,
                            .fetch_count = request->fetch_count,
                            .target_count = request->target_count,
                            .feeds = request->feeds,
                            .fetches = request->fetches,
                            .feed_types = types,
                            .targets = request->targets};
    tutti_graph *job;
    TUTTI_TRY(tutti__graph_extract(graph, &wanted, &job));
    tutti_plan *plan = calloc(1, sizeof *plan);
    tutti_status status = plan ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    if (status == TUTTI_OK) {
        plan->references = 1;
        plan->constants = request->constants;
        status = read_handles(job);
    }
    if (status == TUTTI_OK && !request->rewritten_already && !request->device && !options->mesh &&
        options->strategy && options->strategy->servers)
        status = tutti__server_rewrite(job, tutti__engine_state(engine), &plan->servers);
    if (status == TUTTI_OK && is_spread(options, request))
        status = tutti__spmd_batch(job, &batch);
    if (status == TUTTI_OK && request->constants && !tutti__engine_rewrites(options))
        status = tutti__plan_constants(tutti__engine_state(engine),
                                       request->device ? request->device : options->device, job);
    if (status == TUTTI_OK)
        status = compile(engine, options, request, batch, &job, plan);
    tutti_graph_destroy(job);
    if (status != TUTTI_OK)
        tutti__plan_release(plan);
    else
        *ret = plan;
    return status;
}

tutti_status tutti__plan_create(tutti_engine *engine, const tutti_engine_options *options,
                                tutti_graph *graph, const tutti_run_request *request,
                                const tutti_type *feed_types, tutti_plan **ret)
{
    int64_t batch;
    tutti_type few[16], *types = few;
    if (request->feed_count > 16 && !(types = malloc((size_t)request->feed_count * sizeof *types)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a plan");
    if (request->feed_count > 0)
        memcpy(types, feed_types, (size_t)request->feed_count * sizeof *types);
    tutti_status status = whole_types(options, request, types, &batch);
    if (status == TUTTI_OK)
        status = create(engine, options, graph, request, types, batch, ret);
    if (types != few)
        free(types);
    return status;
}

bool tutti__plan_is_steady(tutti_state *state, const tutti_plan *plan)
{
    for (size_t i = 0; i < plan->updated.count; i++)
        if (!tutti__state_has_value(state, plan->updated.data[i]->name))
            return false;
    return plan->trains;
}

uint64_t tutti__plan_updates(const tutti_plan *plan)
{
    uint64_t sum = 0; /* in any order */
    for (size_t i = 0; i < plan->updated.count; i++)
        sum += tutti__hash_string(0, plan->updated.data[i]->name);
    return sum;
}

tutti_plan *tutti__plan_retain(tutti_plan *plan)
{
    atomic_fetch_add(&plan->references, 1);
    return plan;
}

void tutti__plan_release(tutti_plan *plan)
{
    if (!plan || atomic_fetch_sub(&plan->references, 1) != 1)
        return;
    for (int i = 0; i < plan->piece_count; i++) {
        if (plan->pieces[i].executable)
            plan->pieces[i].executable->table->destroy(plan->pieces[i].executable);
        free(plan->pieces[i].parameters);
        free(plan->pieces[i].results);
        free(plan->pieces[i].rows);
    }
    free(plan->pieces);
    TUTTI_VEC_FREE(&plan->updated);
    tutti__server_plan_free(&plan->servers);
    for (size_t i = 0; i < plan->schedules.count; i++)
        TUTTI_VEC_FREE(&plan->schedules.data[i].texts);
    TUTTI_VEC_FREE(&plan->schedules);
    tutti__arena_free(&plan->arena);
    tutti__bodies_free(plan->bodies);
    tutti_graph_destroy(plan->rest);
    free(plan->rest_feeds);
    free(plan->rest_fetches);
    free(plan->rest_targets);
    free(plan->fetches);
    free(plan);
}
