/* table.c: forecasts for a cluster that is not there: `tutti plan`. Each strategy's
 * program is compiled as its first replica would have it, and rehearsed here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "comm/cost/description.h"
#include "forecast/forecast.h"
#include "io/json.h"
#include "tutti/tutti.h"

double tutti__measured_flops(void)
{
    enum { SIDE = 384, ROUNDS = 6 };
    tutti_graph *graph;
    tutti_session *session = NULL;
    tutti_tensor *a, *out;
    double best = 0;
    if (tutti_graph_create(&graph) != TUTTI_OK)
        return 0;
    if (tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){SIDE, SIDE}, &a) != TUTTI_OK) {
        tutti_graph_destroy(graph);
        return 0;
    }
    tutti_sym x = tutti_placeholder(graph, TUTTI_F32, SIDE, SIDE), y = tutti_matmul(x, x);
    memset(tutti_tensor_data(a), 0, SIDE * SIDE * sizeof(float));
    if (tutti_session_open(&session, graph) == TUTTI_OK)
        for (int i = 0; i < ROUNDS; i++) {
            int64_t start = tutti__now_ns();
            if (tutti_run(session, .feed = TUTTI_FEED({x, a}), .fetch = TUTTI_FETCH({y, &out})) !=
                TUTTI_OK)
                break;
            double seconds = 1e-9 * (double)(tutti__now_ns() - start);
            tutti_tensor_release(out);
            if (i > 0 && (best == 0 || seconds < best))
                best = seconds;
        }
    tutti_session_close(session);
    tutti_graph_destroy(graph);
    tutti_tensor_release(a);
    return best > 0 ? 2.0 * SIDE * SIDE * SIDE / best : 0;
}

/* ---- a step, imagined ---- */

tutti_status tutti__forecast_rehearse(const tutti_forecast_step *a, tutti_strategy *imagined,
                                      tutti_rehearsal *ret)
{
    tutti_engine *engine;
    TUTTI_TRY(tutti_strategy_check(imagined));
    tutti_engine_options options = {.device = tutti_strategy_device(imagined, 0),
                                    .strategy = imagined,
                                    .deterministic =
                                        a->deterministic || imagined->options.deterministic};
    TUTTI_TRY(tutti__engine_create(&options, &engine));
    tutti_status status = tutti__engine_rehearse(engine, a->graph, a->request, ret);
    tutti__engine_destroy(engine);
    return status;
}

/* ---- a cluster that is not there ---- */

typedef struct cluster {
    int ranks, hosts, servers;
    int64_t memory; /* bytes of a rank; 0: any */
    double flops;   /* of a rank; 0: as here */
    tutti_comm_cost cost;
} cluster;

static cluster read_cluster(tutti_job *job)
{
    cluster c = {.ranks = (int)tutti_flag_int(job, "plan-ranks", 1),
                 .flops = tutti_flag_number(job, "plan-flops", 0)};
    c.hosts = (int)tutti_flag_int(job, "plan-hosts", c.ranks);
    c.hosts = c.hosts < 1 ? 1 : c.hosts;
    const char *memory = tutti_flag_text(job, "plan-memory", NULL);
    if (memory && !tutti__read_memory(memory, &c.memory))
        tutti_job_fail(job, tutti_fail(TUTTI_INVALID,
                                       "--memory takes bytes of a rank (16GiB, 512MiB), not '%s'",
                                       memory));
    c.servers = (int)tutti_flag_int(job, "plan-ps", c.ranks < 8 ? 2 : c.ranks / 4);
    c.servers = c.servers < 1 ? 1 : c.servers;
    c.cost = (tutti_comm_cost){.hosts = c.hosts, .phase = 0.5e-6};
    double alpha = tutti_flag_number(job, "plan-alpha", 20e-6);
    double beta = tutti_flag_number(job, "plan-beta", 1e-10);
    for (int link = 0; link < TUTTI_LINK_COUNT; link++)
        c.cost.link[link].alpha = alpha;
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        for (int link = 0; link < TUTTI_LINK_COUNT; link++)
            c.cost.link[link].beta[i] = c.cost.link[link].exchange[i] = beta;
        c.cost.gamma[i] = 0.05e-9;
        c.cost.copy[i] = 0.12e-9;
    }
    return c;
}

/* As the job's flags ask, and else as a strategy at hand would have them: see strategy.c. */
static tutti_strategy_options options_for(tutti_job *job, const cluster *c, bool between)
{
    double beta = c->cost.link[TUTTI_LINK_BETWEEN].beta[TUTTI_COMM_AT_MIB];
    double bytes = 20 * c->cost.link[TUTTI_LINK_BETWEEN].alpha / (beta > 0 ? beta : 1e-10);
    tutti_strategy_options options = tutti__job_strategy_options(job);
    options.devices = NULL; /* those here are not those there */
    if (options.overlap == 0)
        options.overlap = between ? 1 : -1;
    if (options.bucket_bytes <= 0)
        options.bucket_bytes =
            between ? (int64_t)fmin(fmax(bytes, 1 << 20), 25 << 20) : (int64_t)256 << 20;
    return options;
}

/* What was asked for and makes no difference to a forecast. */
static void add_uncounted(tutti_job *job, tutti_text *text)
{
    const char *engine = tutti_flag_text(job, "engine", NULL);
    if (engine)
        tutti__text_add(text, "engine=%s is not counted: a plan knows one rank alone\n", engine);
}

typedef struct row {
    tutti_forecast f;
    char problem[200]; /* why this strategy cannot be; "" */
} row;

static tutti_status forecast(const tutti_forecast_step *a, const char *name, int replicas,
                             const cluster *c, double slowdown, tutti_forecast *ret)
{
    bool one_process = strcmp(name, "mirrored") == 0 || strcmp(name, "central_storage") == 0;
    bool between = !one_process && replicas > 1 && c->hosts > 1;
    tutti_forecast_reach reach = {.cost = c->cost,
                                  .processes = one_process ? 1 : replicas,
                                  .local = one_process ? replicas : 1,
                                  .memory = !between};
    tutti_rehearsal rehearsal = {0};
    if (one_process)
        reach.cost.hosts = 1;
    tutti_strategy_options options = options_for(a->job, c, between);
    tutti_strategy *s = tutti__strategy_imagine(name, replicas, 0, &options);
    if (!s)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast");
    tutti_status status = TUTTI_OK;
    if (!one_process && replicas > 1)
        status = tutti__strategy_check_wire(s, c->hosts);
    reach.algorithm = tutti__strategy_algorithm(s, one_process ? 1 : c->hosts);
    if (status == TUTTI_OK)
        status = tutti__forecast_rehearse(a, s, &rehearsal);
    if (status == TUTTI_OK)
        status = tutti__forecast(&rehearsal, &reach, slowdown, ret);
    tutti__rehearsal_free(&rehearsal);
    tutti_strategy_close(s);
    ret->strategy = name;
    return status;
}

static void add_row(tutti_text *text, const row *r, bool best)
{
    char a[32], b[32], c[32], d[32], e[32];
    const tutti_forecast *f = &r->f;
    char name[64];
    snprintf(name, sizeof name, f->servers > 0 ? "%s:%d" : "%s", f->strategy, f->servers);
    if (r->problem[0]) {
        tutti__text_add(text, "%-22s %8d  cannot be: %s\n", name, f->replicas, r->problem);
        return;
    }
    tutti__text_add(text, "%-22s %8d %12s %12s %12s %12s %12s %9.0f %%%s\n", name, f->replicas,
                    tutti__bytes_text(f->total, a), tutti__bytes_text(f->sent, b),
                    tutti__seconds_text(f->compute, c), tutti__seconds_text(f->exposed, d),
                    tutti__seconds_text(f->step, e), 100 * f->efficiency,
                    best ? "  <- recommended" : "");
}

static void add_split(tutti_text *text, const row *r)
{
    char a[32], b[32], c[32], d[32];
    const tutti_forecast *f = &r->f;
    if (r->problem[0])
        return;
    tutti__text_add(text,
                    "%d server%s beside the ranks: compute %s, pull %s, push %s, waiting %s behind "
                    "other workers\n",
                    f->servers, f->servers == 1 ? "" : "s", tutti__seconds_text(f->compute, a),
                    tutti__seconds_text(f->pull, b), tutti__seconds_text(f->push, c),
                    tutti__seconds_text(f->waiting, d));
}

static const char *const names[] = {"one_device",      "mirrored",      "multi_worker_mirrored",
                                    "central_storage", "fully_sharded", "tensor"};
enum { ONE_DEVICE, MIRRORED, MULTI_WORKER, CENTRAL, SHARDED, TENSOR, STRATEGIES, PASSES = 3 };
enum { ONE_SERVER = STRATEGIES, SEVERAL_SERVERS, ROWS };

/* By purpose, so that it can be seen what would have to be smaller. */
static void say_misfit(const cluster *c, row *r)
{
    char needs[32], has[32], weights[32], gradients[32], slots[32], values[32];
    const tutti_forecast *f = &r->f;
    if (c->memory == 0 || f->total <= (double)c->memory)
        return;
    snprintf(r->problem, sizeof r->problem,
             "needs %s of %s: weights %s, gradients %s, slots %s, values of a step %s",
             tutti__bytes_text(f->total, needs), tutti__bytes_text((double)c->memory, has),
             tutti__bytes_text(f->weights, weights), tutti__bytes_text(f->gradients, gradients),
             tutti__bytes_text(f->slots, slots), tutti__bytes_text(f->activations, values));
}

/* In turns, several times, and each one's least step counts: whoever disturbs the machine meanwhile
 * disturbs all alike. What one device cannot do, nobody can. */
static tutti_status forecast_table_fill(const tutti_forecast_step *a, const cluster *c,
                                        double slowdown, row rows[STRATEGIES])
{
    for (int i = 0; i < PASSES * STRATEGIES; i++) {
        row *r = &rows[i % STRATEGIES];
        int at = i % STRATEGIES;
        bool one_process = at == MIRRORED || at == CENTRAL;
        int replicas = at == ONE_DEVICE ? 1 : one_process ? c->ranks / c->hosts : c->ranks;
        tutti_forecast f = {.replicas = replicas < 1 ? 1 : replicas};
        if (r->problem[0])
            continue;
        tutti_status status = forecast(a, names[at], f.replicas, c, slowdown, &f);
        if (status != TUTTI_OK && at == ONE_DEVICE)
            return status;
        if (status != TUTTI_OK)
            snprintf(r->problem, sizeof r->problem, "%s", tutti_error_message());
        if (i < STRATEGIES || status != TUTTI_OK || f.step < r->f.step)
            r->f = f;
        r->f.strategy = names[at];
    }
    for (int i = 0; i < STRATEGIES; i++)
        if (!rows[i].problem[0])
            say_misfit(c, &rows[i]);
    return TUTTI_OK;
}

/* Gradients of a step; deterministic sums have no buckets. */
static double gradient_bytes(const tutti_forecast *f)
{
    return f->gradients > 0 ? f->gradients : f->summed;
}

/* Servers beside the ranks, on hosts of their own: what a worker computes is what it computes
 * beside other workers, but slots and updates are the servers'. */
static void fill_servers(const cluster *c, int servers, const row *workers, row *ret)
{
    int between = TUTTI_LINK_BETWEEN;
    *ret = *workers;
    ret->f.strategy = "parameter_server";
    ret->f.servers = servers;
    if (ret->problem[0])
        return;
    ret->f.total -= workers->f.slots;
    tutti__forecast_servers(gradient_bytes(&workers->f), c->ranks, servers,
                            c->cost.link[between].alpha,
                            c->cost.link[between].beta[TUTTI_COMM_AT_MIB], &ret->f);
}

static int best_of(const row rows[STRATEGIES])
{
    int best = ONE_DEVICE;
    for (int i = 0; i < STRATEGIES;
         i++) /* of one replica the others are one device by another name */
        if (!rows[i].problem[0] && rows[i].f.replicas > 1 &&
            (rows[best].problem[0] || rows[i].f.step < rows[best].f.step))
            best = i;
    return best;
}

/* The clusters' table, once it is filled. */
typedef struct table {
    const tutti_forecast_step *asked;
    int64_t batch; /* 0: not known */
    cluster cluster;
    double speed; /* FLOP a second of a rank */
    row rows[ROWS];
    int best;
} table;

static tutti_status fill_table(table *t)
{
    cluster *c = &t->cluster;
    *c = read_cluster(t->asked->job);
    double here = tutti__measured_flops();
    t->speed = c->flops > 0 ? c->flops : here;
    TUTTI_TRY(tutti_job_check(t->asked->job));
    const tutti_comm_cost *cost = &c->cost;
    TUTTI_TRY(tutti__check_seconds("plan-alpha", false, cost->link[TUTTI_LINK_BETWEEN].alpha));
    TUTTI_TRY(tutti__check_seconds("plan-beta", true, cost->link[TUTTI_LINK_BETWEEN].beta[0]));
    TUTTI_TRY(
        forecast_table_fill(t->asked, c, c->flops > 0 && here > 0 ? here / c->flops : 1, t->rows));
    fill_servers(c, 1, &t->rows[MULTI_WORKER], &t->rows[ONE_SERVER]);
    fill_servers(c, c->servers, &t->rows[MULTI_WORKER], &t->rows[SEVERAL_SERVERS]);
    for (int i = 0; i < ROWS; i++) {
        tutti_forecast *f = &t->rows[i].f;
        f->efficiency = /* against one */
            f->step > 0 ? t->rows[ONE_DEVICE].f.step / f->replicas / f->step : 0;
    }
    t->best = best_of(t->rows);
    return TUTTI_OK;
}

static void add_table(const table *t, tutti_text *text)
{
    const cluster *c = &t->cluster;
    const tutti_forecast *distributed = &t->rows[MULTI_WORKER].f;
    char gradients[32];
    double summed = gradient_bytes(distributed);
    tutti__text_add(text, "%s", t->asked->name);
    if (t->batch > 0)
        tutti__text_add(text, ", batch %lld", (long long)t->batch);
    tutti__text_add(text, " on %d ranks of %d hosts, %.3g GFLOP/s each: %.3g GFLOP a step",
                    c->ranks, c->hosts, t->speed * 1e-9, t->rows[ONE_DEVICE].f.flops * 1e-9);
    if (summed > 0) /* nothing is, where workers cannot share the batch, or cannot be */
        tutti__text_add(text, ", %s of gradients", tutti__bytes_text(summed, gradients));
    tutti__text_add(text, "\n%-22s %8s %12s %12s %12s %12s %12s %11s\n", "strategy", "replicas",
                    "memory", "sent a step", "compute", "exposed", "step", "efficiency");
    for (int i = 0; i < ROWS; i++)
        add_row(text, &t->rows[i], i == t->best);
    for (int i = ONE_SERVER; i < ROWS; i++)
        add_split(text, &t->rows[i]);
    add_uncounted(t->asked->job, text);
}

static void put_number(tutti_json_writer *w, const char *key, double value)
{
    tutti__json_key(w, key);
    tutti__json_put_real(w, value);
}

static void put_int(tutti_json_writer *w, const char *key, int64_t value)
{
    tutti__json_key(w, key);
    tutti__json_put_int(w, value);
}

static void put_text(tutti_json_writer *w, const char *key, const char *value)
{
    tutti__json_key(w, key);
    tutti__json_put_string(w, value);
}

static void put_forecast(tutti_json_writer *w, const tutti_forecast *f, bool best)
{
    put_int(w, "memory_bytes", (int64_t)f->total);
    put_int(w, "sent_bytes", (int64_t)f->sent);
    put_number(w, "compute_us", round(f->compute * 1e8) / 100);
    put_number(w, "exposed_us", round(f->exposed * 1e8) / 100);
    if (f->servers > 0) {
        put_number(w, "pull_us", round(f->pull * 1e8) / 100);
        put_number(w, "push_us", round(f->push * 1e8) / 100);
        put_number(w, "waiting_us", round(f->waiting * 1e8) / 100);
    }
    put_number(w, "step_us", round(f->step * 1e8) / 100);
    put_number(w, "efficiency", round(f->efficiency * 1e4) / 1e4);
    tutti__json_key(w, "recommended");
    tutti__json_put_bool(w, best);
}

/* With --json: one object a strategy. */
static tutti_status add_lines(const table *t, tutti_text *text)
{
    for (int i = 0; i < ROWS; i++) {
        const row *r = &t->rows[i];
        tutti_json_writer w = {.text = text};
        tutti__json_begin(&w, '{');
        put_text(&w, "plan", t->asked->name);
        if (t->batch > 0)
            put_int(&w, "batch", t->batch);
        put_int(&w, "ranks", t->cluster.ranks);
        put_int(&w, "hosts", t->cluster.hosts);
        put_text(&w, "strategy", r->f.strategy);
        if (r->f.servers > 0)
            put_int(&w, "servers", r->f.servers);
        put_int(&w, "replicas", r->f.replicas);
        if (r->problem[0])
            put_text(&w, "problem", r->problem);
        else
            put_forecast(&w, &r->f, i == t->best);
        tutti__json_end(&w);
        TUTTI_TRY(tutti__json_finish(&w));
        tutti__text_add(text, "\n");
    }
    return TUTTI_OK;
}

tutti_status tutti__forecast_table(const tutti_forecast_step *a, int64_t batch, char **ret_text)
{
    tutti_text text = {0};
    table t = {.asked = a, .batch = batch};
    tutti_status status = fill_table(&t);
    if (status == TUTTI_OK && tutti_flag_on(a->job, "json"))
        status = add_lines(&t, &text);
    else if (status == TUTTI_OK)
        add_table(&t, &text);
    if (status == TUTTI_OK && text.failed)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast");
    if (status == TUTTI_OK)
        *ret_text = text.data;
    else
        tutti__text_free(&text);
    return status;
}

tutti_status tutti__forecast_table_of(tutti_job *job, const char *name, const tutti_made *made,
                                      char **ret_text)
{
    const tutti_run_request *ask = made->request;
    int64_t batch = 0; /* rows of the first value that has some */
    for (int i = 0; i < ask->feed_count && batch == 0; i++)
        if (tutti_tensor_rank(ask->values[i]) > 0)
            batch = tutti_tensor_dims(ask->values[i])[0];
    tutti_forecast_step a = {.job = job,
                             .name = name,
                             .deterministic = tutti_flag_on(job, "deterministic"),
                             .graph = made->graph,
                             .request = ask};
    return tutti__forecast_table(&a, batch, ret_text);
}
