/* forecast.c: see forecast.h. A step is taken for three times the forward pass: the backward pass
 * makes a gradient of the input and one of the weights for each product. */
#include "nn/forecast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "nn/spread.h"

/* ---- formulas ---- */

/* The best all_reduce of so many bytes. */
static double best_all_reduce(const tutti_comm_cost *cost, int ranks, double bytes)
{
    double best = 0;
    for (const char *const *name = tutti_comm_algorithms("all_reduce"); *name; name++) {
        if (strcmp(*name, "fixed") == 0 || strcmp(*name, "compressed") == 0 ||
            strcmp(*name, "native") == 0 || (strcmp(*name, "direct") == 0 && cost->hosts > 1))
            continue;
        double seconds = tutti_comm_predict(cost, "all_reduce", *name, ranks, (int64_t)bytes);
        if (seconds > 0 && seconds < 1e9 && (best == 0 || seconds < best))
            best = seconds;
    }
    return best;
}

void tutti__forecast(const char *strategy, const tutti_model_size *size, int replicas, double flops,
                     const tutti_comm_cost *cost, tutti_forecast *ret)
{
    bool central = strcmp(strategy, "central_storage") == 0;
    int r = replicas > 1 ? replicas : 1;
    double alone = 3 * size->flops / flops;
    *ret = (tutti_forecast){.strategy = strategy,
                            .replicas = r,
                            .weights = size->weights,
                            .gradients = size->gradients,
                            .slots = size->slots,
                            .activations = size->activations / r,
                            .compute = alone / r};
    if (r > 1 && central) { /* all gradients to one device, all weights from it */
        ret->sent = 2 * size->gradients * (r - 1) / r;
        ret->communication =
            tutti_comm_predict(cost, "all_reduce", "central", r, (int64_t)size->gradients);
    } else if (r > 1) {
        ret->sent = 2 * size->gradients * (r - 1) / r;
        ret->communication = best_all_reduce(cost, r, size->gradients);
    }
    ret->total = ret->weights + ret->gradients + ret->slots + ret->activations;
    ret->step = ret->compute + ret->communication;
    ret->efficiency = ret->step > 0 ? alone / r / ret->step : 0;
}

/* ---- what is at hand ---- */

/* Operations a second of a replica, by a product of 384 x 384 on its device: some milliseconds. */
static double measure_flops(tutti_strategy *strategy)
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
    const char *device = strategy ? tutti_strategy_device(strategy, 0) : NULL;
    memset(tutti_tensor_data(a), 0, SIDE * SIDE * sizeof(float));
    if (tutti_session_open(&session, graph, .device = device) == TUTTI_OK)
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

static const char *milliseconds(double seconds, char ret[32])
{
    if (seconds < 1e-3)
        snprintf(ret, 32, "%.0f us", seconds * 1e6);
    else
        snprintf(ret, 32, "%.2f ms", seconds * 1e3);
    return ret;
}

static void add_head(tutti_text *text, const tutti_model *model, const tutti_strategy *s)
{
    int workers = tutti_strategy_workers(s), local = tutti_strategy_local(s);
    tutti_comm *world = s->team->world;
    tutti__text_add(text, "%s   ", model->name);
    if (world)
        tutti__text_add(text, "%d workers x %d %s on %d host%s   ", workers, local,
                        local == 1 ? tutti_strategy_device(s, 0) : "devices",
                        tutti_comm_hosts(world), tutti_comm_hosts(world) == 1 ? "" : "s");
    else
        tutti__text_add(text, "%d devices   ", local);
    tutti__text_add(text, "strategy %s%s", tutti_strategy_name(s),
                    s->options.deterministic ? " (deterministic)" : "");
    tutti__text_add(text, "   all-reduce %s over %s\n",
                    s->options.reduction ? s->options.reduction : "by cost",
                    world ? tutti_comm_engine(world, tutti_comm_rank(world) == 0 ? 1 : 0)
                          : "memory of this process");
}

static void add_body(tutti_text *text, const tutti_forecast *f, const tutti_comm_cost *cost)
{
    char a[32], b[32], c[32], d[32], e[32];
    tutti__text_add(text,
                    "  per replica: weights %s  gradients %s  optimizer %s  activations %s   "
                    "total %s\n",
                    tutti__bytes_text(f->weights, a), tutti__bytes_text(f->gradients, b),
                    tutti__bytes_text(f->slots, c), tutti__bytes_text(f->activations, d),
                    tutti__bytes_text(f->total, e));
    tutti__text_add(text,
                    "  per step: %s sent, predicted %s compute + %s communication, efficiency "
                    "%.0f %%",
                    tutti__bytes_text(f->sent, a), milliseconds(f->compute, b),
                    milliseconds(f->communication, c), 100 * f->efficiency);
    int link = cost->hosts > 1 ? TUTTI_LINK_BETWEEN : TUTTI_LINK_WITHIN;
    tutti__text_add(text, "   (alpha %.1f us, beta %.2f ns/B)\n", cost->link[link].alpha * 1e6,
                    cost->link[link].beta[2] * 1e9);
}

tutti_status tutti__forecast_text(tutti_model *model, int64_t batch, char **ret_text)
{
    tutti_strategy *s = tutti__model_strategy(model);
    tutti_model_size size;
    tutti_forecast f;
    tutti_comm_cost cost;
    tutti_text text = {0};
    TUTTI_TRY(tutti__model_size(model, batch > 0 ? batch : 1, &size));
    tutti_comm_get_cost(s->team->world ? s->team->world : s->team->inner[0], &cost);
    double flops = measure_flops(s);
    tutti__forecast(tutti_strategy_name(s), &size, tutti_strategy_replicas(s),
                    flops > 0 ? flops : 1e9, &cost, &f);
    add_head(&text, model, s);
    add_body(&text, &f, &cost);
    if (text.failed) {
        tutti__text_free(&text);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast");
    }
    *ret_text = text.data;
    return TUTTI_OK;
}

/* ---- a cluster that is not there ---- */

static tutti_comm_cost given_cost(tutti_job *job, int hosts)
{
    tutti_comm_cost cost = {.hosts = hosts, .phase = 0.5e-6};
    double alpha = tutti_flag_number(job, "plan-alpha", 20e-6);
    double beta = tutti_flag_number(job, "plan-beta", 1e-10);
    for (int link = 0; link < TUTTI_LINK_COUNT; link++)
        cost.link[link].alpha = alpha;
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        for (int link = 0; link < TUTTI_LINK_COUNT; link++)
            cost.link[link].beta[i] = cost.link[link].exchange[i] = beta;
        cost.gamma[i] = 0.05e-9;
        cost.copy[i] = cost.staged[i] = 0.12e-9;
    }
    return cost;
}

static void add_row(tutti_text *text, const tutti_forecast *f, bool best)
{
    char a[32], b[32], c[32], d[32], e[32];
    tutti__text_add(text, "%-22s %8d %12s %12s %12s %12s %12s %9.0f %%%s\n", f->strategy,
                    f->replicas, tutti__bytes_text(f->total, a), tutti__bytes_text(f->sent, b),
                    milliseconds(f->compute, c), milliseconds(f->communication, d),
                    milliseconds(f->step, e), 100 * f->efficiency, best ? "  <- recommended" : "");
}

tutti_status tutti__forecast_table(tutti_model *model, int64_t batch, char **ret_text)
{
    static const char *const names[] = {"one_device", "mirrored", "multi_worker_mirrored",
                                        "central_storage"};
    enum { COUNT = sizeof names / sizeof *names };
    tutti_job *job = model->job;
    int ranks = (int)tutti_flag_int(job, "plan-ranks", 1);
    int hosts = (int)tutti_flag_int(job, "plan-hosts", ranks);
    double flops = tutti_flag_number(job, "plan-flops", 0);
    tutti_comm_cost cost = given_cost(job, hosts < 1 ? 1 : hosts);
    tutti_model_size size;
    tutti_forecast rows[COUNT];
    tutti_text text = {0};
    char a[32];
    int best = 0;
    TUTTI_TRY(tutti_job_check(job));
    TUTTI_TRY(tutti__model_size(model, batch > 0 ? batch : 1, &size));
    flops = flops > 0 ? flops : measure_flops(NULL);
    tutti__text_add(&text,
                    "%s, batch %lld on %d ranks of %d hosts, %.3g GFLOP/s each: %.3g GFLOP a step, "
                    "%s of gradients\n%-22s %8s %12s %12s %12s %12s %12s %11s\n",
                    model->name, (long long)batch, ranks, hosts, flops * 1e-9,
                    3 * size.flops * 1e-9, tutti__bytes_text(size.gradients, a), "strategy",
                    "replicas", "memory", "sent a step", "compute", "exchange", "step",
                    "efficiency");
    for (int i = 0; i < COUNT; i++) {
        bool one_host = i == 1 || i == 3; /* of one process */
        tutti__forecast(names[i], &size,
                        i == 0     ? 1
                        : one_host ? ranks / (hosts > 0 ? hosts : 1)
                                   : ranks,
                        flops, &cost, &rows[i]);
        if (rows[i].step < rows[best].step)
            best = i;
    }
    for (int i = 0; i < COUNT; i++)
        add_row(&text, &rows[i], i == best);
    if (text.failed) {
        tutti__text_free(&text);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast");
    }
    *ret_text = text.data;
    return TUTTI_OK;
}
