/* forecast_table.c: forecasts for a cluster that is not there: `tutti plan`. Each strategy's
 * program is compiled as its first replica would have it, and rehearsed here. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "nn/forecast.h"
#include "nn/spread.h"
#include "nn/trainer.h"

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

/* A step, and what it is fed with. */
typedef struct asked {
    tutti_job *job;
    const char *name;
    bool deterministic;
    tutti_graph *graph;
    const tutti_ask *ask;
} asked;

static tutti_status rehearse_imagined(const asked *a, tutti_strategy *imagined,
                                      tutti_rehearsal *ret)
{
    tutti_engine *engine;
    TUTTI_TRY(tutti_strategy_check(imagined));
    tutti_engine_options options = {.device = tutti_strategy_device(imagined, 0),
                                    .strategy = imagined,
                                    .deterministic =
                                        a->deterministic || imagined->options.deterministic};
    TUTTI_TRY(tutti__engine_create(&options, &engine));
    tutti_status status = tutti__engine_rehearse(engine, a->graph, a->ask, ret);
    tutti__engine_destroy(engine);
    return status;
}

/* What a form's step asks for, of the whole batch. */
typedef struct form_step {
    tutti_edge feeds[TUTTI_MAX_COMPONENTS];
    tutti_node *target;
    tutti_ask ask;
    asked asked;
} form_step;

static void open_step(tutti_model *model, const tutti_form *form, int count,
                      tutti_tensor *const *tensors, form_step *ret)
{
    for (int i = 0; i < count; i++)
        ret->feeds[i] = tutti__edge(form->feeds.data[i]);
    ret->target = form->target.node;
    ret->ask = (tutti_ask){.feed_count = count,
                           .feeds = ret->feeds,
                           .values = tensors,
                           .target_count = 1,
                           .targets = &ret->target};
    ret->asked = (asked){.job = model->job,
                         .name = model->name,
                         .deterministic = model->deterministic,
                         .graph = model->graph,
                         .ask = &ret->ask};
}

tutti_status tutti__forecast_imagined(tutti_model *model, tutti_form *form, int count,
                                      tutti_tensor *const *tensors, tutti_strategy *imagined,
                                      tutti_rehearsal *ret)
{
    form_step step;
    open_step(model, form, count, tensors, &step);
    return rehearse_imagined(&step.asked, imagined, ret);
}

/* ---- a cluster that is not there ---- */

typedef struct cluster {
    int ranks, hosts;
    double flops; /* of a rank; 0: as here */
    tutti_comm_cost cost;
} cluster;

static cluster read_cluster(tutti_job *job)
{
    cluster c = {.ranks = (int)tutti_flag_int(job, "plan-ranks", 1),
                 .flops = tutti_flag_number(job, "plan-flops", 0)};
    c.hosts = (int)tutti_flag_int(job, "plan-hosts", c.ranks);
    c.hosts = c.hosts < 1 ? 1 : c.hosts;
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

/* As a strategy at hand would have them: see strategy.c. */
static tutti_strategy_options options_for(tutti_job *job, const cluster *c, bool between)
{
    double beta = c->cost.link[TUTTI_LINK_BETWEEN].beta[TUTTI_COMM_AT_MIB];
    double bytes = 20 * c->cost.link[TUTTI_LINK_BETWEEN].alpha / (beta > 0 ? beta : 1e-10);
    tutti_strategy_options options = {.struct_size = sizeof options,
                                      .deterministic = tutti_flag_on(job, "deterministic"),
                                      .shards = (int)tutti_flag_int(job, "shards", 0),
                                      .overlap = between ? 1 : -1,
                                      .bucket_bytes = (int64_t)256 << 20};
    if (between)
        options.bucket_bytes = (int64_t)fmin(fmax(bytes, 1 << 20), 25 << 20);
    return options;
}

typedef struct row {
    tutti_forecast f;
    char problem[200]; /* why this strategy cannot be; "" */
} row;

static tutti_status forecast(const asked *a, const char *name, int replicas, const cluster *c,
                             double slowdown, tutti_forecast *ret)
{
    bool one_process = strcmp(name, "mirrored") == 0 || strcmp(name, "central_storage") == 0;
    bool between = !one_process && replicas > 1 && c->hosts > 1;
    tutti_reach reach = {.cost = c->cost,
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
    tutti_status status = rehearse_imagined(a, s, &rehearsal);
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
    if (r->problem[0]) {
        tutti__text_add(text, "%-22s %8d  cannot be: %s\n", f->strategy, f->replicas, r->problem);
        return;
    }
    tutti__text_add(text, "%-22s %8d %12s %12s %12s %12s %12s %9.0f %%%s\n", f->strategy,
                    f->replicas, tutti__bytes_text(f->total, a), tutti__bytes_text(f->sent, b),
                    tutti__seconds_text(f->compute, c), tutti__seconds_text(f->exposed, d),
                    tutti__seconds_text(f->step, e), 100 * f->efficiency,
                    best ? "  <- recommended" : "");
}

static const char *const names[] = {"one_device", "mirrored", "multi_worker_mirrored",
                                    "central_storage"};
enum { ONE_DEVICE, MIRRORED, MULTI_WORKER, CENTRAL, STRATEGIES, PASSES = 3 };

/* In turns, several times, and each one's least step counts: whoever disturbs the machine meanwhile
 * disturbs all alike. What one device cannot do, nobody can. */
static tutti_status fill(const asked *a, const cluster *c, double slowdown, row rows[STRATEGIES])
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
    return TUTTI_OK;
}

static int best_of(const row rows[STRATEGIES])
{
    int best = ONE_DEVICE;
    for (int i = 0; i < STRATEGIES;
         i++) /* of one replica the others are one device by another name */
        if (!rows[i].problem[0] && rows[i].f.replicas > 1 && rows[i].f.step < rows[best].f.step)
            best = i;
    return best;
}

static tutti_status add_table(const asked *a, int64_t batch, tutti_text *text)
{
    cluster c = read_cluster(a->job);
    double here = tutti__measured_flops();
    double slowdown = c.flops > 0 && here > 0 ? here / c.flops : 1;
    row rows[STRATEGIES] = {0};
    char gradients[32];
    TUTTI_TRY(tutti_job_check(a->job));
    TUTTI_TRY(fill(a, &c, slowdown, rows));
    const tutti_forecast *alone = &rows[ONE_DEVICE].f, *spread = &rows[MULTI_WORKER].f;
    /* Deterministic sums have no buckets. */
    double summed = spread->gradients > 0 ? spread->gradients : spread->summed;
    tutti__text_add(text, "%s", a->name);
    if (batch > 0)
        tutti__text_add(text, ", batch %lld", (long long)batch);
    tutti__text_add(text,
                    " on %d ranks of %d hosts, %.3g GFLOP/s each: %.3g GFLOP a step, "
                    "%s of gradients\n%-22s %8s %12s %12s %12s %12s %12s %11s\n",
                    c.ranks, c.hosts, (c.flops > 0 ? c.flops : here) * 1e-9, alone->flops * 1e-9,
                    tutti__bytes_text(summed, gradients), "strategy", "replicas", "memory",
                    "sent a step", "compute", "exposed", "step", "efficiency");
    for (int i = 0; i < STRATEGIES; i++) {
        tutti_forecast *f = &rows[i].f;
        f->efficiency = f->step > 0 ? alone->step / f->replicas / f->step : 0; /* against one */
        add_row(text, &rows[i], i == best_of(rows));
    }
    return text->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast") : TUTTI_OK;
}

static tutti_status make_table(const asked *a, int64_t batch, char **ret_text)
{
    tutti_text text = {0};
    tutti_status status = add_table(a, batch, &text);
    if (status == TUTTI_OK)
        *ret_text = text.data;
    else
        tutti__text_free(&text);
    return status;
}

tutti_status tutti__forecast_table(tutti_model *model, tutti_dataset *data, char **ret_text)
{
    tutti_wiring wiring;
    tutti_element element;
    tutti_tensor *tensors[TUTTI_MAX_COMPONENTS];
    tutti_form *form;
    form_step step;
    TUTTI_TRY(tutti__model_meet(model, data, true, &wiring));
    TUTTI_TRY(tutti_dataset_peek(data, &element));
    if (element.count == 0)
        return tutti_fail(TUTTI_INVALID, "the data to plan for is empty");
    for (int i = 0; i < wiring.count; i++)
        tensors[i] = element.tensors[wiring.order[i]];
    tutti_status status = tutti__form_for(model, true, wiring.count, tensors, &form);
    if (status == TUTTI_OK) {
        open_step(model, form, wiring.count, tensors, &step);
        status = make_table(&step.asked, tutti_tensor_dims(tensors[0])[0], ret_text);
    }
    tutti_element_release(&element);
    return status;
}

tutti_status tutti__forecast_table_of(tutti_job *job, const char *name, const tutti_made *made,
                                      char **ret_text)
{
    const tutti_ask *ask = made->request;
    int64_t batch = 0; /* rows of the first value that has some */
    for (int i = 0; i < ask->feed_count && batch == 0; i++)
        if (tutti_tensor_rank(ask->values[i]) > 0)
            batch = tutti_tensor_dims(ask->values[i])[0];
    asked a = {.job = job,
               .name = name,
               .deterministic = tutti_flag_on(job, "deterministic"),
               .graph = made->graph,
               .ask = ask};
    return make_table(&a, batch, ret_text);
}
