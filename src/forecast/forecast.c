/* forecast.c: see forecast.h. */
#include "forecast/forecast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the device that is done last. */
static tutti_status add_times(const tutti_rehearsal *rehearsal, const tutti_forecast_reach *reach,
                              double slowdown, tutti_forecast *f)
{
    tutti_course *courses = calloc((size_t)rehearsal->count + 1, sizeof *courses);
    tutti_status status = courses ? tutti__forecast_courses(rehearsal, reach, slowdown, courses)
                                  : tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast");
    for (int i = 0; status == TUTTI_OK && i < rehearsal->count; i++) {
        const tutti_course *c = &courses[i];
        f->flops = fmax(f->flops, c->flops);
        f->sent = fmax(f->sent, c->sent);
        f->summed = fmax(f->summed, c->summed);
        f->communication = fmax(f->communication, c->communication);
        if (c->step <= f->step)
            continue;
        f->step = c->step;
        f->compute = c->compute;
        f->exposed = c->exposed;
    }
    f->efficiency = f->step > 0 ? f->compute / f->step : 0;
    free(courses);
    return status;
}

tutti_status tutti__forecast(const tutti_rehearsal *rehearsal, const tutti_forecast_reach *reach,
                             double slowdown, tutti_forecast *ret)
{
    const tutti_usage *u = &rehearsal->usage;
    double local = rehearsal->count > 0 ? rehearsal->count : 1;
    tutti_forecast f = {.strategy = "one_device",
                        .replicas = reach->processes * reach->local,
                        .timed = rehearsal->whole,
                        .weights = (double)u->weights / local,
                        .slots = (double)u->slots / local,
                        .gradients = (double)u->shared / local,
                        .activations = (double)(u->arena + u->constants) / local,
                        .data = (double)(u->data + u->sent) / local};
    f.total = f.weights + f.slots + f.gradients + f.activations + f.data;
    if (rehearsal->whole)
        TUTTI_TRY(add_times(rehearsal, reach, slowdown, &f));
    *ret = f;
    return TUTTI_OK;
}

/* ---- a strategy at hand ---- */

tutti_status tutti__reach_of(tutti_strategy *strategy, bool measures, tutti_forecast_reach *ret)
{
    *ret = (tutti_forecast_reach){.processes = 1, .local = 1};
    const tutti_axis_group *axis_group = strategy ? strategy->axis_group : NULL;
    if (!axis_group || axis_group->size < 2)
        return TUTTI_OK;
    ret->local = axis_group->local;
    ret->processes = axis_group->size / axis_group->local;
    ret->algorithm = axis_group->algorithm;
    if (axis_group->inner) {
        tutti_comm_get_cost(axis_group->inner[0], &ret->inner);
        if (measures)
            TUTTI_TRY(tutti__axis_group_cost(strategy->axis_group, &ret->inner));
        ret->cost = ret->inner;
        ret->memory = true;
    }
    if (axis_group->world) {
        int peer = tutti_comm_rank(axis_group->world) == 0 ? 1 : 0;
        tutti_comm_get_cost(axis_group->world, &ret->cost);
        ret->memory = strcmp(tutti_comm_engine(axis_group->world, peer), "shm") == 0 &&
                      tutti_comm_hosts(axis_group->world) == 1;
    }
    return TUTTI_OK;
}

tutti_status tutti__forecast_join(const tutti_strategy *strategy, tutti_forecast *f)
{
    double worst[] = {f->compute, f->exposed, f->total, f->timed ? 0 : 1};
    if (!strategy || !strategy->axis_group || !strategy->axis_group->world)
        return TUTTI_OK;
    TUTTI_TRY(tutti_comm_all_reduce(strategy->axis_group->world, worst, worst, 4, TUTTI_F64,
                                    TUTTI_MAX, NULL));
    f->compute = worst[0];
    f->exposed = worst[1];
    f->timed = worst[3] == 0;
    f->step = f->compute + f->exposed;
    f->efficiency = f->step > 0 ? f->compute / f->step : 0;
    return TUTTI_OK;
}

tutti_status tutti__forecast_here(tutti_strategy *strategy, tutti_rehearsal *rehearsal,
                                  tutti_forecast *ret)
{
    tutti_forecast_reach reach;
    tutti_forecast f;
    tutti_status status = tutti__reach_of(strategy, rehearsal->whole, &reach);
    if (status == TUTTI_OK)
        status = tutti__forecast(rehearsal, &reach, 1, &f);
    tutti__rehearsal_free(rehearsal);
    TUTTI_TRY(status);
    if (strategy)
        f.strategy = tutti_strategy_name(strategy);
    TUTTI_TRY(tutti__forecast_join(strategy, &f));
    *ret = f;
    return TUTTI_OK;
}

static uint64_t runs_so_far(const tutti_made *made)
{
    tutti_engine_stats stats;
    tutti__engine_stats(made->run->owner, &stats);
    return stats.runs;
}

void tutti__forecast_note(tutti_forecast_past *past, const tutti_made *made, double seconds)
{
    uint64_t updates = tutti__plan_updates(made->plan);
    tutti_usage u = tutti__plan_usage(made->plan);
    int devices = made->plan->piece_count > 0 ? made->plan->piece_count : 1, at = 0;
    past->runs = runs_so_far(made);
    while (at < past->count && past->programs[at].updates != updates)
        at++;
    if (at == (int)TUTTI_COUNT(past->programs) || !(seconds > 0))
        return;
    past->count = at == past->count ? at + 1 : past->count;
    past->programs[at].updates = updates;
    past->programs[at].between = (tutti_between){
        (u.weights + u.slots + u.arena + u.shared + u.data) / (size_t)devices, seconds};
}

/* Of few runs each takes as long as one of the others does on average. Many beside training, as
 * where a world is asked, are small and take long. */
tutti_between tutti__forecast_between(const tutti_forecast_past *past, const tutti_made *made)
{
    enum { FEW = 8 };
    uint64_t updates = tutti__plan_updates(made->plan);
    uint64_t runs = past->runs > 0 ? runs_so_far(made) - past->runs : 0;
    tutti_between all = {0};
    int others = 0;
    if (runs > FEW)
        return (tutti_between){.bytes = 1 << 20, .seconds = 1};
    for (int i = 0; i < past->count; i++)
        if (past->programs[i].updates != updates) {
            all.bytes += past->programs[i].between.bytes;
            all.seconds += past->programs[i].between.seconds;
            others++;
        }
    if ((int)runs > others && others > 0)
        all.seconds *= (double)runs / others;
    return all;
}

tutti_status tutti__forecast_plan(const tutti_made *made, tutti_forecast *ret)
{
    tutti_rehearsal rehearsal = {0};
    TUTTI_TRY(tutti__plan_rehearse(made->plan, made->run, made->values, &rehearsal));
    return tutti__forecast_here(tutti__engine_strategy(made->run->owner), &rehearsal, ret);
}

/* ---- in words ---- */

const char *tutti__bytes_text(double bytes, char ret[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int i = 0;
    while (bytes >= 1024 && i < 4)
        bytes /= 1024, i++;
    snprintf(ret, 32, i == 0 ? "%.0f %s" : "%.2f %s", bytes, units[i]);
    return ret;
}

const char *tutti__seconds_text(double seconds, char ret[32])
{
    if (seconds < 1e-3)
        snprintf(ret, 32, "%.0f us", seconds * 1e6);
    else
        snprintf(ret, 32, "%.2f ms", seconds * 1e3);
    return ret;
}

static void add_head(tutti_text *text, const char *name, const tutti_strategy *s)
{
    tutti_comm *world = s ? s->axis_group->world : NULL;
    int local = s ? tutti_strategy_local(s) : 1;
    tutti__text_add(text, "%s   ", name);
    if (world)
        tutti__text_add(text, "%d workers x %d %s on %d host%s   ", tutti_strategy_workers(s),
                        local, local == 1 ? tutti_strategy_device(s, 0) : "devices",
                        tutti_comm_hosts(world), tutti_comm_hosts(world) == 1 ? "" : "s");
    else
        tutti__text_add(text, "%d device%s   ", local, local == 1 ? "" : "s");
    tutti__text_add(text, "strategy %s%s", s ? tutti_strategy_name(s) : "one_device",
                    s && s->options.deterministic ? " (deterministic)" : "");
    if (s && s->axis_group->size > 1)
        tutti__text_add(text, "   all-reduce %s over %s",
                        s->options.reduction ? s->options.reduction : "by cost",
                        world ? tutti_comm_engine(world, tutti_comm_rank(world) == 0 ? 1 : 0)
                              : "memory of this process");
    tutti__text_add(text, "\n");
}

static void add_memory(tutti_text *text, const tutti_forecast *f)
{
    char a[32], b[32], c[32], d[32], e[32];
    tutti__text_add(text, "  per replica: weights %s  optimizer %s",
                    tutti__bytes_text(f->weights, a), tutti__bytes_text(f->slots, b));
    if (f->gradients > 0)
        tutti__text_add(text, "  gradients in buckets %s", tutti__bytes_text(f->gradients, c));
    tutti__text_add(text, "  activations%s %s  data %s   total ",
                    f->gradients > 0 ? "" : " and gradients", tutti__bytes_text(f->activations, d),
                    tutti__bytes_text(f->data, e));
    tutti__text_add(text, "%s\n", tutti__bytes_text(f->total, a));
}

static void add_time(tutti_text *text, const tutti_forecast *f)
{
    char a[32], b[32], c[32], d[32], e[32];
    bool waits = f->exposed > 1.01 * f->communication; /* for what one of them does alone */
    if (!f->timed) {
        tutti__text_add(text, "  per step: time not predicted: a device cannot rehearse it\n");
        return;
    }
    tutti__text_add(text, "  per step: predicted %s = %s compute", tutti__seconds_text(f->step, a),
                    tutti__seconds_text(f->compute, b));
    if (f->replicas > 1)
        tutti__text_add(text, " + %s %s %s %scommunication, %s sent, efficiency %.0f %%",
                        tutti__seconds_text(f->exposed, c),
                        waits ? "waiting for another replica and for" : "exposed of",
                        tutti__seconds_text(f->communication, d), waits ? "of " : "",
                        tutti__bytes_text(f->sent, e), 100 * f->efficiency);
    if (f->replicas > 1 && f->batch == 1)
        tutti__text_add(text, ": one row cannot be shared, every replica does the whole work");
    else if (f->batch > 0 && f->batch < f->replicas)
        tutti__text_add(text, ": %lld of %d replicas have rows", (long long)f->batch, f->replicas);
    tutti__text_add(text, "\n");
}

tutti_status tutti__forecast_text(const char *name, tutti_strategy *strategy,
                                  const tutti_forecast *forecast, char **ret_text)
{
    tutti_text text = {0};
    add_head(&text, name, strategy);
    add_memory(&text, forecast);
    add_time(&text, forecast);
    if (text.failed) {
        tutti__text_free(&text);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast");
    }
    *ret_text = text.data;
    return TUTTI_OK;
}

void tutti__forecast_servers(double bytes, int workers, int servers, double alpha, double beta,
                             tutti_forecast *f)
{
    double share = (double)workers / servers; /* copies that a server's link carries */
    f->servers = servers;
    f->pull = f->push = alpha + bytes * beta;
    f->waiting = share > 1 ? 2 * (share - 1) * bytes * beta : 0;
    f->exposed = f->communication = f->pull + f->push + f->waiting;
    f->step = f->compute + f->exposed + f->input;
    f->sent = bytes;
}
