/* engine_run.c: runs through the cache of plans, and runs of sub-graphs through those that their
 * plan keeps. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "exec/plan/cache.h"
#include "exec/run/engine_inside.h"
#include "exec/run/rehearse.h"
#include "exec/run/server_run.h"

/* Runs the rest of a graph whose shapes are known now, fed with what the first segment gave. */
static tutti_status run_rest(tutti_engine *engine, tutti_plan *plan,
                             const tutti_run_request *request, tutti_tensor *const *results,
                             tutti_tensor **ret_values)
{
    tutti_tensor **fetched = calloc((size_t)plan->rest_fetch_count + 1, sizeof *fetched);
    if (!fetched)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    tutti_run_request rest = {.feed_count = plan->rest_feed_count,
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
                              .rewritten_already = true,
                              .inside = request->inside ? plan : NULL,
                              .watched = request->watched,
                              .met = request->met || plan->meets,
                              .ticket = request->ticket,
                              .servers = request->servers};
    tutti_status status = tutti__engine_run(engine, plan->rest, &rest, fetched);
    for (int i = 0; status == TUTTI_OK && ret_values && i < plan->fetch_count; i++) {
        int from = plan->fetches[i];
        ret_values[i] = tutti_tensor_retain(from >= 0 ? results[from] : fetched[~from]);
    }
    for (int i = 0; status == TUTTI_OK && i < plan->rest_fetch_count; i++)
        tutti_tensor_release(fetched[i]);
    free(fetched);
    return status;
}

static tutti_status fill_feeds(int count, const tutti_body_feed *needed, int input_count,
                               tutti_tensor *const *inputs, tutti_edge *ret_feeds,
                               tutti_tensor **ret_values)
{
    for (int i = 0; i < count; i++) {
        if (needed[i].input < 0 || needed[i].input >= input_count)
            return tutti_fail(TUTTI_INVALID,
                              "parameter '%s' of a sub-graph has the index %" PRId64
                              ", its caller gives %d",
                              needed[i].edge.node->name, needed[i].input, input_count);
        ret_feeds[i] = needed[i].edge;
        ret_values[i] = inputs[needed[i].input];
    }
    return TUTTI_OK;
}

/* The graph is the body, its parameters are the feeds. */
static tutti_status call_graph(tutti_run *run, const tutti_device *device, tutti_graph *body,
                               int input_count, tutti_tensor *const *inputs,
                               tutti_tensor **ret_results)
{
    tutti_edge few[32], *feeds = few;
    tutti_tensor *few_values[32], **values = few_values;
    tutti_engine *engine = run->owner;
    const tutti_body_feed *needed;
    int count;
    pthread_mutex_lock(&engine->lock);
    tutti_status status = tutti__bodies_feeds(run->plan, body, &count, &needed);
    pthread_mutex_unlock(&engine->lock);
    TUTTI_TRY(status);
    if (count > 32) {
        feeds = malloc((size_t)count * sizeof *feeds);
        values = malloc((size_t)count * sizeof *values);
    }
    status = feeds && values ? fill_feeds(count, needed, input_count, inputs, feeds, values)
                             : tutti_fail(TUTTI_NO_MEMORY, "no memory to call a sub-graph");
    tutti_run_request request = {.feed_count = count,
                                 .feeds = feeds,
                                 .values = values,
                                 .deadline = run->deadline,
                                 .inside = run->plan,
                                 .watched = run->watched,
                                 .fetch_count = (int)body->results.count,
                                 .fetches = body->results.data,
                                 .rewritten_already = true,
                                 .device = device->name};
    if (status == TUTTI_OK)
        status = tutti__engine_run(engine, body, &request, ret_results);
    if (feeds != few)
        free(feeds);
    if (values != few_values)
        free(values);
    return status;
}

static tutti_run new_run(tutti_engine *engine, tutti_plan *plan)
{
    return (tutti_run){.id = atomic_fetch_add(&engine->next_run, 1),
                       .state = engine->state,
                       .owner = engine,
                       .plan = plan,
                       .call_graph = call_graph,
                       .groups = tutti__engine_groups(&engine->options)};
}

/* A ticket is returned by whoever took it. */
static void end_ticket(const tutti_plan *plan, const tutti_run *run)
{
    if (plan->counter)
        tutti__ticket_return(run->state, &run->ticket);
}

static tutti_status run_plan(tutti_engine *engine, tutti_plan *plan,
                             const tutti_run_request *request, tutti_tensor *const *values,
                             tutti_tensor **ret_values)
{
    tutti_run run = new_run(engine, plan);
    /* With several pieces the own flag comes first: it ends what waits for a piece that failed. */
    run.watched = request->watched && plan->piece_count == 1 ? request->watched : &run.cancelled;
    run.deadline =
        request->deadline ? request->deadline : tutti__now_ns() + engine->options.deadline_ns;
    run.ticket = request->ticket;
    run.servers = request->servers;
    run.numbered = !request->inside && (plan->meets || request->met ||
                                        tutti__strategy_processes(engine->options.strategy) == 1);
    if (!plan->rest) {
        tutti_status status = tutti__plan_run(plan, &run, values, ret_values);
        end_ticket(plan, &run);
        return status;
    }
    tutti_tensor **results = calloc((size_t)plan->result_count + 1, sizeof *results);
    if (!results)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a run");
    tutti_status status = tutti__plan_run(plan, &run, values, results);
    if (status == TUTTI_OK) {
        tutti_run_request same_run = *request;
        same_run.deadline = run.deadline;
        same_run.ticket = run.ticket;
        same_run.ticket.seen = true;
        status = run_rest(engine, plan, &same_run, results, ret_values);
        for (int i = 0; i < plan->result_count; i++)
            tutti_tensor_release(results[i]);
    }
    end_ticket(plan, &run);
    free(results);
    return status;
}

/* With variables on servers: pull, run, push. */
static tutti_status run_with_servers(tutti_engine *engine, tutti_plan *plan,
                                     const tutti_run_request *request, double weight,
                                     tutti_tensor *const *values, tutti_tensor **ret_values)
{
    tutti_server_run servers;
    tutti_run_request own = *request;
    own.servers = &servers;
    tutti_status status = tutti__server_run_begin(engine, plan, &servers);
    if (status == TUTTI_OK)
        status = run_plan(engine, plan, &own, values, ret_values);
    if (status == TUTTI_OK && plan->servers.pushes > 0)
        status = tutti__server_run_commit(engine, plan, &servers, weight);
    tutti__server_run_end(&servers);
    return status;
}

void tutti__engine_own_rows(const tutti_engine *engine, tutti_run_request *ask)
{
    const tutti_strategy *strategy = engine->options.strategy;
    if (tutti__strategy_processes(strategy) == 1 || !strategy->counts)
        return;
    ask->batch = strategy->counted;
    ask->counts = strategy->counts;
    ask->count_count = tutti__strategy_processes(strategy);
}

typedef struct operands {
    tutti_type types[16];
    tutti_tensor *values[16];
    tutti_type *all_types;
    tutti_tensor **all_values;
} operands;

/* Of a feed that holds the whole batch: the rows of this process. *ret_batch: of the batch. */
static tutti_status take_rows(tutti_engine *engine, const tutti_run_request *request, int i,
                              int64_t *ret_batch, tutti_tensor **ret)
{
    tutti_tensor *value = request->values[i];
    tutti_strategy *strategy = engine->options.strategy;
    bool cuts = request->batch == 0 && !request->rewritten_already && !request->device &&
                !engine->options.mesh && tutti__strategy_processes(strategy) > 1 &&
                tutti_tensor_rank(value) > 0 &&
                tutti__is_batch(request->feeds[i].node, request->feeds[i].index);
    if (!cuts)
        return tutti_tensor_contiguous(value, ret);
    int64_t first, rows;
    tutti_tensor *part;
    *ret_batch = tutti_tensor_dims(value)[0];
    tutti_spmd spmd = tutti__strategy_spmd(strategy, *ret_batch);
    tutti__spmd_own_rows(&spmd, *ret_batch, &first, &rows);
    TUTTI_TRY(tutti_tensor_slice(value, 0, first, rows, 1, &part));
    tutti_status status = tutti_tensor_contiguous(part, ret);
    tutti_tensor_release(part);
    return status;
}

/* A worker of servers takes its rows of a batch that it trains on; what it only looks at is its
 * own. The rest of the run sees these rows as the whole batch. *ret_weight: what they count. */
static tutti_status take_server_rows(tutti_engine *engine, tutti_graph *graph,
                                     const tutti_run_request *asked, tutti_run_request *own,
                                     tutti_tensor **values, double *ret_weight)
{
    const tutti_strategy *s = engine->options.strategy;
    int64_t batch = asked->batch, first = 0, rows = -1;
    *ret_weight = 1;
    own->batch = 0;
    if (asked->rewritten_already || asked->device || s->server_workers == 1 ||
        !tutti__server_trains(graph, asked->target_count, asked->targets, asked->fetch_count,
                              asked->fetches))
        return TUTTI_OK;
    for (int i = 0; i < asked->feed_count; i++) {
        tutti_tensor *part;
        if (!tutti__is_batch(asked->feeds[i].node, asked->feeds[i].index) ||
            tutti_tensor_rank(values[i]) < 1)
            continue;
        rows = tutti_tensor_dims(values[i])[0];
        if (asked->batch > 0) /* its own already */
            continue;
        batch = rows;
        tutti__strategy_server_rows(s, batch, &first, &rows);
        TUTTI_TRY(tutti_tensor_slice(values[i], 0, first, rows, 1, &part));
        tutti_tensor_release(values[i]);
        tutti_status status = tutti_tensor_contiguous(part, &values[i]);
        tutti_tensor_release(part);
        if (status != TUTTI_OK)
            values[i] = NULL;
        TUTTI_TRY(status);
    }
    if (rows >= 0 && batch > 0)
        *ret_weight = (double)rows * s->server_workers / (double)batch;
    return TUTTI_OK;
}

/* With `rehearsal` it is rehearsed in place of being run. */
static tutti_status run_contiguous(tutti_engine *engine, tutti_graph *graph,
                                   const tutti_run_request *asked, operands *o,
                                   tutti_rehearsal *rehearsal, tutti_tensor **ret_values)
{
    tutti_run_request own = *asked, *request = &own;
    bool servers = tutti__engine_has_servers(&engine->options);
    double weight = 1;
    for (int i = 0; i < request->feed_count; i++)
        TUTTI_TRY(take_rows(engine, asked, i, &own.batch, &o->all_values[i]));
    if (servers)
        TUTTI_TRY(take_server_rows(engine, graph, asked, &own, o->all_values, &weight));
    for (int i = 0; i < request->feed_count; i++)
        o->all_types[i] = *tutti_tensor_type(o->all_values[i]);
    tutti_plan *plan;
    bool is_new;
    TUTTI_TRY(tutti__engine_plan_for(engine, graph, request, o->all_types, &is_new, &plan));
    tutti_status status = TUTTI_OK;
    if (rehearsal || (is_new && engine->watch.made)) {
        tutti_run run = new_run(engine, plan);
        if (rehearsal)
            status = tutti__plan_rehearse(plan, &run, o->all_values, rehearsal);
        else
            engine->watch.made(engine->watch.context,
                               &(tutti_made){plan, &run, o->all_values, graph, asked});
    }
    if (!rehearsal && plan->servers.variables.count > 0)
        status = run_with_servers(engine, plan, request, weight, o->all_values, ret_values);
    else if (!rehearsal)
        status = run_plan(engine, plan, request, o->all_values, ret_values);
    tutti__plan_release(plan);
    return status;
}

static tutti_status run_or_rehearse(tutti_engine *engine, tutti_graph *graph,
                                    const tutti_run_request *request, tutti_rehearsal *rehearsal,
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

tutti_status tutti__engine_run(tutti_engine *engine, tutti_graph *graph,
                               const tutti_run_request *request, tutti_tensor **ret_values)
{
    if (!request->rewritten_already)
        atomic_fetch_add(&engine->runs, 1);
    return run_or_rehearse(engine, graph, request, NULL, ret_values);
}

tutti_status tutti__engine_rehearse(tutti_engine *engine, tutti_graph *graph,
                                    const tutti_run_request *request, tutti_rehearsal *ret)
{
    return run_or_rehearse(engine, graph, request, ret, NULL);
}
