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

tutti_status tutti__forecast_imagined(tutti_model *model, tutti_form *form, int64_t batch,
                                      int count, tutti_tensor *const *tensors,
                                      tutti_strategy *imagined, tutti_rehearsal *ret)
{
    tutti_engine *engine;
    TUTTI_TRY(tutti_strategy_check(imagined));
    tutti_engine_options options = {.device = tutti_strategy_device(imagined, 0),
                                    .strategy = imagined,
                                    .deterministic =
                                        model->deterministic || imagined->options.deterministic};
    TUTTI_TRY(tutti__engine_create(&options, &engine));
    tutti_status status = tutti__form_rehearse(model, engine, form, batch, count, tensors, ret);
    tutti__engine_destroy(engine);
    return status;
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
        c.cost.copy[i] = c.cost.staged[i] = 0.12e-9;
    }
    return c;
}

/* As a strategy at hand would have them: see strategy.c. */
static tutti_strategy_options options_for(const tutti_model *model, const cluster *c, bool between)
{
    double beta = c->cost.link[TUTTI_LINK_BETWEEN].beta[2];
    double bytes = 20 * c->cost.link[TUTTI_LINK_BETWEEN].alpha / (beta > 0 ? beta : 1e-10);
    tutti_strategy_options options = {.struct_size = sizeof options,
                                      .deterministic = tutti_flag_on(model->job, "deterministic"),
                                      .shards = (int)tutti_flag_int(model->job, "shards", 0),
                                      .overlap = between ? 1 : -1,
                                      .bucket_bytes = (int64_t)256 << 20};
    if (between)
        options.bucket_bytes = (int64_t)fmin(fmax(bytes, 1 << 20), 25 << 20);
    return options;
}

/* The step of a form, and what it is fed with. */
typedef struct asked {
    tutti_model *model;
    tutti_form *form;
    int count;
    tutti_tensor *tensors[TUTTI_MAX_COMPONENTS];
} asked;

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
    tutti_strategy_options options = options_for(a->model, c, between);
    tutti_strategy *s = tutti__strategy_imagine(name, replicas, 0, &options);
    if (!s)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast");
    tutti_status status =
        tutti__forecast_imagined(a->model, a->form, 0, a->count, a->tensors, s, &rehearsal);
    if (status == TUTTI_OK)
        status = tutti__forecast(&rehearsal, &reach, slowdown, ret);
    tutti__rehearsal_free(&rehearsal);
    tutti_strategy_close(s);
    ret->strategy = name;
    return status;
}

static void add_row(tutti_text *text, const tutti_forecast *f, bool best)
{
    char a[32], b[32], c[32], d[32], e[32];
    tutti__text_add(text, "%-22s %8d %12s %12s %12s %12s %12s %9.0f %%%s\n", f->strategy,
                    f->replicas, tutti__bytes_text(f->total, a), tutti__bytes_text(f->sent, b),
                    tutti__seconds_text(f->compute, c), tutti__seconds_text(f->exposed, d),
                    tutti__seconds_text(f->step, e), 100 * f->efficiency,
                    best ? "  <- recommended" : "");
}

static tutti_status add_table(const asked *a, int64_t batch, tutti_text *text)
{
    static const char *const names[] = {"one_device", "mirrored", "multi_worker_mirrored",
                                        "central_storage"};
    enum { COUNT = sizeof names / sizeof *names };
    cluster c = read_cluster(a->model->job);
    double here = tutti__measured_flops();
    double slowdown = c.flops > 0 && here > 0 ? here / c.flops : 1;
    tutti_forecast rows[COUNT];
    int best = 0;
    char gradients[32];
    TUTTI_TRY(tutti_job_check(a->model->job));
    for (int i = 0; i < COUNT; i++) {
        bool one_process = i == 1 || i == 3;
        int replicas = i == 0 ? 1 : one_process ? c.ranks / c.hosts : c.ranks;
        TUTTI_TRY(forecast(a, names[i], replicas < 1 ? 1 : replicas, &c, slowdown, &rows[i]));
        if (rows[i].step < rows[best].step)
            best = i;
    }
    tutti__text_add(text,
                    "%s, batch %lld on %d ranks of %d hosts, %.3g GFLOP/s each: %.3g GFLOP a step, "
                    "%s of gradients\n%-22s %8s %12s %12s %12s %12s %12s %11s\n",
                    a->model->name, (long long)batch, c.ranks, c.hosts,
                    (c.flops > 0 ? c.flops : here) * 1e-9, rows[0].flops * 1e-9,
                    tutti__bytes_text(rows[2].gradients, gradients), "strategy", "replicas",
                    "memory", "sent a step", "compute", "exposed", "step", "efficiency");
    for (int i = 0; i < COUNT; i++) {
        rows[i].efficiency = /* against one device */
            rows[i].step > 0 ? rows[0].step / rows[i].replicas / rows[i].step : 0;
        add_row(text, &rows[i], i == best);
    }
    return text->failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast") : TUTTI_OK;
}

tutti_status tutti__forecast_table(tutti_model *model, tutti_dataset *data, char **ret_text)
{
    tutti_wiring wiring;
    tutti_element element;
    tutti_text text = {0};
    asked a = {.model = model};
    TUTTI_TRY(tutti__model_meet(model, data, true, &wiring));
    TUTTI_TRY(tutti_dataset_peek(data, &element));
    if (element.count == 0)
        return tutti_fail(TUTTI_INVALID, "the data to plan for is empty");
    a.count = wiring.count;
    for (int i = 0; i < wiring.count; i++)
        a.tensors[i] = element.tensors[wiring.order[i]];
    tutti_status status = tutti__form_for(model, true, a.count, a.tensors, &a.form);
    if (status == TUTTI_OK)
        status = add_table(&a, tutti_tensor_dims(a.tensors[0])[0], &text);
    tutti_element_release(&element);
    if (status == TUTTI_OK)
        *ret_text = text.data;
    else
        tutti__text_free(&text);
    return status;
}
