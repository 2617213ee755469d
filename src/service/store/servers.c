/* servers.c: the store behind a strategy's table: servers and workers as processes of a job, or in
 * this process alone. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/world.h"
#include "parallel/strategies/servers.h"
#include "service/store/local.h"
#include "service/store/partition.h"
#include "service/store/processes.h"
#include "service/store/rule.h"
#include "service/store/update_graph.h"

/* Where this worker's time went, in ns, but for its first iteration, which compiles. */
typedef struct iteration_times {
    int64_t iterations, compute, pull, push, input;
    int64_t least_pull; /* what a pull takes that waits for nobody */
    int64_t at;         /* when the last call ended */
    bool pulled, begun; /* the last call was a pull; a first iteration is over */
} iteration_times;

typedef struct store_servers {
    iteration_times times;
    tutti_servers_options options;
    tutti_store_local *local;         /* of a process alone, */
    tutti_store_processes *processes; /* or of a job */
    tutti_store_placement placement;
    tutti_store_worker *worker;
    bool first; /* of the workers: it says how it went */
    char consistency[TUTTI_STORE_WORD], nan[TUTTI_STORE_WORD], rate[TUTTI_STORE_WORD];
} store_servers;

static tutti_status open_alone(store_servers *s)
{
    TUTTI_TRY(
        tutti__store_local_open(&(tutti_store_local_options){.servers = 1,
                                                             .workers = 1,
                                                             .limit = s->options.limit,
                                                             .deadline_ns = s->options.deadline_ns},
                                &s->local));
    tutti_store_drive drive = tutti__store_local_drive(s->local);
    return tutti__store_worker_open(tutti__store_local_client(s->local, 0), &drive, &s->placement,
                                    &s->worker);
}

/* A server's: it ends when the workers have left. */
static tutti_status serve(store_servers *s, tutti_store_order *order)
{
    TUTTI_TRY(tutti__store_processes_serve(s->processes));
    tutti_status status = tutti__store_processes_close(s->processes, true);
    s->processes = NULL;
    if (status == TUTTI_OK && s->options.record[0])
        status = tutti__store_order_write(s->options.record,
                                          tutti_cluster_index(s->options.cluster), order);
    return status;
}

static tutti_status open_process(store_servers *s, tutti_store_order *order, bool *ret_served)
{
    bool serves = tutti_cluster_role(s->options.cluster) == TUTTI_ROLE_PS;
    bool ordered = serves && (s->options.record[0] || s->options.replay[0]);
    if (serves && s->options.replay[0])
        TUTTI_TRY(tutti__store_order_read(s->options.replay,
                                          tutti_cluster_index(s->options.cluster), order));
    tutti_store_processes_options options = {.cluster = s->options.cluster,
                                             .replicas = s->options.replicas > 0,
                                             .limit = s->options.limit,
                                             .order = ordered ? order : NULL,
                                             .deadline_ns = s->options.deadline_ns,
                                             .join_ns = s->options.join_ns};
    TUTTI_TRY(tutti__store_processes_open(&options, &s->processes));
    *ret_served = serves;
    return serves ? serve(s, order) : TUTTI_OK;
}

static tutti_status open_processes(store_servers *s, bool *ret_served)
{
    tutti_store_order order = {0};
    tutti_status status = open_process(s, &order, ret_served);
    if (s->processes == NULL || status != TUTTI_OK || *ret_served) {
        if (s->processes) { /* it looks at the order no more */
            (void)tutti__store_processes_close(s->processes, false);
            s->processes = NULL;
        }
        tutti__store_order_free(&order);
        return status;
    }
    tutti_store_drive drive = tutti__store_processes_drive(s->processes);
    return tutti__store_worker_open(tutti__store_processes_client(s->processes), &drive,
                                    &s->placement, &s->worker);
}

/* Wrong words are found before anybody meets. */
static tutti_status check_options(const tutti_servers_options *options)
{
    tutti_policy policy;
    tutti_store_rate rate;
    TUTTI_TRY(tutti__policy_open(options->consistency, &policy));
    tutti__policy_close(&policy);
    return tutti__store_rate_parse(options->rate, &rate);
}

static void servers_free(store_servers *s)
{
    tutti__store_worker_close(s->worker);
    tutti__store_local_close(s->local);
    tutti__store_placement_free(&s->placement);
    free(s);
}

static tutti_status servers_open(const tutti_servers_options *options, void **ret_servers,
                                 bool *ret_served)
{
    TUTTI_TRY(check_options(options));
    store_servers *s = calloc(1, sizeof *s);
    if (!s)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for parameter servers");
    s->options = *options;
    s->first = !options->cluster || tutti_cluster_rank(options->cluster) == 0;
    snprintf(s->consistency, sizeof s->consistency, "%s", options->consistency);
    snprintf(s->nan, sizeof s->nan, "%s", options->nan);
    snprintf(s->rate, sizeof s->rate, "%s", options->rate);
    int slots = options->cluster ? tutti_cluster_count(options->cluster, TUTTI_ROLE_PS) : 1;
    tutti_status status =
        tutti__store_placement_create(options->placement, NULL, NULL, slots, &s->placement);
    if (status == TUTTI_OK)
        status = options->cluster ? open_processes(s, ret_served) : open_alone(s);
    if (status != TUTTI_OK || *ret_served) {
        if (s->processes) {
            (void)tutti__store_processes_close(s->processes, false);
            s->processes = NULL;
        }
        servers_free(s);
        return status;
    }
    *ret_servers = s;
    return TUTTI_OK;
}

/* ---- variables ---- */

_Static_assert((int)TUTTI_SERVERS_BLOCK == (int)TUTTI_STORE_BLOCK_ROWS,
               "rules of tables are for a block");

/* The whole variable's rule; shards ask for theirs in their order. */
typedef struct given_rule {
    const tutti_servers_variable *variable;
    tutti_store_partition partition;
    int64_t piece;
} given_rule;

static tutti_status rule_of_shard(void *context, const tutti_type *shard, void **ret_data,
                                  size_t *ret_size)
{
    given_rule *rule = context;
    const tutti_servers_variable *v = rule->variable;
    tutti_packed_data whole = {v->rule, v->rule_size};
    if (rule->partition.pieces > 1 && !v->rows[0])
        return tutti__store_update_graph_cut(
            whole, &v->type, shard, rule->partition.axis,
            tutti__store_partition_begin(&v->type, &rule->partition, rule->piece++), ret_data,
            ret_size);
    void *copy = malloc(v->rule_size + 1);
    if (!copy)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for an update rule");
    memcpy(copy, v->rule, v->rule_size);
    *ret_data = copy;
    *ret_size = v->rule_size;
    return TUTTI_OK;
}

static tutti_status servers_variable(void *servers, const tutti_servers_variable *variable,
                                     int *ret_variable)
{
    store_servers *s = servers;
    given_rule rule = {.variable = variable};
    tutti_status status =
        tutti__store_partition_parse(variable->partitioner, &variable->type, &rule.partition);
    if (status != TUTTI_OK)
        return tutti__error_prefix(status, "variable '%s'", variable->name);
    return tutti__store_worker_variable(
        s->worker,
        &(tutti_store_variable_spec){.name = variable->name,
                                     .type = variable->type,
                                     .partitioner = variable->partitioner,
                                     .consistency = s->consistency,
                                     .nan = s->nan,
                                     .rate = s->rate,
                                     .build = rule_of_shard,
                                     .rule = variable->rows[0] ? "hashed" : NULL,
                                     .initial = variable->rows,
                                     .context = &rule},
        variable->value, ret_variable);
}

static void note_pull(iteration_times *t, int64_t begin, int64_t end)
{
    if (t->begun && !t->pulled)
        t->input += begin - t->at;
    if (t->begun) {
        t->pull += end - begin;
        t->least_pull =
            t->least_pull > 0 && t->least_pull < end - begin ? t->least_pull : end - begin;
    }
    t->at = end;
    t->pulled = true;
}

/* What pulling in the middle of a run took does not count as computing. */
static void note_rows(iteration_times *t, int64_t took)
{
    t->pull += t->begun ? took : 0;
    t->at += took;
}

static void note_push(iteration_times *t, int64_t begin, int64_t end)
{
    if (t->begun && t->pulled) {
        t->compute += begin - t->at;
        t->push += end - begin;
        t->iterations++;
    }
    t->at = end;
    t->begun = true;
    t->pulled = false;
}

static tutti_status servers_pull(void *servers, int count, const int *variables,
                                 tutti_tensor **ret_values)
{
    store_servers *s = servers;
    int64_t begin = tutti__now_ns();
    tutti_status status =
        tutti__store_worker_pull(s->worker, count, variables, s->options.atomic, ret_values);
    note_pull(&s->times, begin, tutti__now_ns());
    return status;
}

static tutti_status servers_pull_rows(void *servers, int variable, tutti_tensor *rows,
                                      tutti_tensor **ret_values)
{
    store_servers *s = servers;
    int64_t begin = tutti__now_ns();
    tutti_status status = tutti__store_worker_pull_rows(s->worker, variable, rows, ret_values);
    note_rows(&s->times, tutti__now_ns() - begin);
    return status;
}

/* Once all variables of a step are made. */
static void say_loads(const store_servers *s)
{
    char text[1024];
    tutti__store_placement_print(&s->placement, text, sizeof text);
    tutti__log(TUTTI_LOG_INFO, "parameter servers: %s", text);
}

static tutti_status servers_push(void *servers, int count, const tutti_servers_push *pushes)
{
    store_servers *s = servers;
    int64_t begin = tutti__now_ns();
    tutti_store_push *list = calloc((size_t)count + 1, sizeof *list);
    if (!list)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to push %d gradients", count);
    for (int i = 0; i < count; i++)
        list[i] = (tutti_store_push){.variable = pushes[i].variable,
                                     .gradient = pushes[i].gradient,
                                     .rows = pushes[i].rows,
                                     .rate = pushes[i].rate};
    tutti_status status = tutti__store_worker_push_each(s->worker, count, list, s->options.atomic);
    free(list);
    if (status == TUTTI_OK && s->processes)
        status = tutti__store_processes_flush(s->processes);
    if (status == TUTTI_OK && s->first && !s->times.begun)
        say_loads(s);
    note_push(&s->times, begin, tutti__now_ns());
    return status;
}

static tutti_status servers_get(void *servers, int variable, tutti_servers_named_fn *each,
                                void *context)
{
    store_servers *s = servers;
    return tutti__store_worker_get(s->worker, variable, each, context);
}

static tutti_status servers_put(void *servers, int variable, const char *name, tutti_tensor *tensor)
{
    store_servers *s = servers;
    tutti_store_named named = {(char *)(uintptr_t)name, tensor};
    return tutti__store_worker_put(s->worker, variable, 1, &named);
}

/* ---- the end ---- */

/* The forecast's split (forecast.h, tutti__forecast_servers), measured. */
static void say_times(const iteration_times *t)
{
    double n = (double)t->iterations * 1e6, waiting;
    if (t->iterations == 0)
        return;
    waiting = (double)(t->pull - t->least_pull * t->iterations);
    waiting = waiting > 0 ? waiting : 0;
    tutti__log(TUTTI_LOG_INFO,
               "parameter servers: an iteration of this worker took %.3g ms: compute %.3g, pull "
               "%.3g, push %.3g, waiting %.3g, input %.3g (mean of %" PRId64 ")",
               (double)(t->compute + t->pull + t->push + t->input) / n, (double)t->compute / n,
               ((double)t->pull - waiting) / n, (double)t->push / n, waiting / n,
               (double)t->input / n, t->iterations);
}

/* The last word of a job: how old its gradients were, and what each server held. */
static void say_report(store_servers *s)
{
    tutti_store_staleness staleness = {0};
    tutti_text lines = {0}, text = {0};
    char load[1000];
    if (s->processes)
        (void)tutti__store_processes_report(s->processes, &staleness, &lines);
    else
        tutti__store_server_staleness(tutti__store_local_server(s->local, 0), &staleness);
    say_times(&s->times);
    if (staleness.gradients > 0) {
        tutti__store_staleness_print(&staleness, &text);
        if (!text.failed)
            tutti__log(TUTTI_LOG_INFO, "parameter servers: %s", text.data);
        tutti__store_placement_print(&s->placement, load, sizeof load);
        tutti__log(TUTTI_LOG_INFO, "parameter servers: %s", load);
    }
    tutti__text_free(&lines);
    tutti__text_free(&text);
}

static tutti_status servers_close(void *servers, bool well)
{
    store_servers *s = servers;
    tutti_status status = well ? tutti__store_worker_settle(s->worker) : TUTTI_OK;
    if (well && status == TUTTI_OK && s->first)
        say_report(s);
    tutti__store_worker_close(s->worker);
    s->worker = NULL;
    if (s->processes) {
        tutti_status left = tutti__store_processes_close(s->processes, well && status == TUTTI_OK);
        status = status == TUTTI_OK ? left : status;
        s->processes = NULL;
    }
    servers_free(s);
    return status;
}

const tutti_servers_kind tutti_servers_kind_store = {
    .name = "store",
    .open = servers_open,
    .close = servers_close,
    .variable = servers_variable,
    .pull = servers_pull,
    .pull_rows = servers_pull_rows,
    .push = servers_push,
    .get = servers_get,
    .put = servers_put,
};
