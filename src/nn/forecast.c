/* forecast.c: see forecast.h. */
#include "nn/forecast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn/spread.h"
#include "nn/trainer.h"

/* ---- prices ---- */

static double bytes_of(const tutti_type *type)
{
    int64_t count = tutti_type_count(type);
    return count < 0 ? 0 : ceil((double)count * (double)tutti_dtype_size(type->dtype) / 64) * 64;
}

/* What a collective carries: of a bucket all values, in the form that they travel in. */
static double carried(const tutti_node *node)
{
    double bytes = 0;
    const tutti_attr *wire = tutti_attr_find(node->attrs, node->attr_count, "wire");
    const char *form = wire ? tutti__str(node, "wire") : "";
    const tutti_attr *cut = tutti_attr_find(node->attrs, node->attr_count, "cut");
    for (int i = 0; i < node->output_count; i++)
        bytes += bytes_of(&node->types[i]);
    for (int i = 0; cut && i < cut->count; i++) /* the half in which sums go back is left out */
        bytes -= bytes_of(&node->types[cut->value.ints[i]]) / 2;
    return strcmp(form, "bf16") == 0 || strcmp(form, "f16") == 0 ? bytes / 2 : bytes;
}

static bool chosen_by_cost(const char *name, bool memory)
{
    if (memory)
        return strcmp(name, "direct") == 0;
    return strcmp(name, "direct") != 0 && strcmp(name, "fixed") != 0 &&
           strcmp(name, "compressed") != 0 && strcmp(name, "native") != 0;
}

static double cheapest(const tutti_comm_cost *cost, bool memory, const char *operation, int ranks,
                       double bytes)
{
    double best = INFINITY;
    for (const char *const *name = tutti_comm_algorithms(operation); *name; name++)
        if (chosen_by_cost(*name, memory))
            best = fmin(best, tutti_comm_predict(cost, operation, *name, ranks, (int64_t)bytes));
    return isfinite(best) ? best : 0;
}

/* The own operation where an algorithm was asked for that has it; else by cost. */
static double price_of(const tutti_reach *reach, const char *operation, double bytes)
{
    int ranks = reach->processes > 1 ? reach->processes : reach->local;
    double given = reach->algorithm ? tutti_comm_predict(&reach->cost, operation, reach->algorithm,
                                                         ranks, (int64_t)bytes)
                                    : INFINITY;
    double all =
        isfinite(given) ? given : cheapest(&reach->cost, reach->memory, operation, ranks, bytes);
    if (reach->processes > 1 && reach->local > 1) /* two levels: team.c */
        all += cheapest(&reach->inner, true, "reduce", reach->local, bytes) +
               cheapest(&reach->inner, true, "broadcast", reach->local, bytes);
    return all;
}

/* Seconds; *ret_sent: bytes that leave a replica. 0 for what meets nobody. */
static double price(const tutti_reach *reach, const tutti_node *node, double *ret_sent)
{
    int replicas = reach->processes * reach->local;
    double bytes = carried(node);
    const char *name = node->op->name;
    *ret_sent = 0;
    if (replicas < 2 || bytes == 0)
        return 0;
    if (strcmp(name, "all_reduce") == 0 || strcmp(name, "all_reduce_many") == 0) {
        *ret_sent = 2 * bytes * (replicas - 1) / replicas;
        return price_of(reach, "all_reduce", bytes);
    }
    if (strcmp(name, "all_reduce_shards") == 0) {
        *ret_sent = 2 * bytes * (replicas - 1) / replicas;
        return tutti_comm_predict(&reach->cost, "all_reduce", "fixed", replicas, (int64_t)bytes);
    }
    if (strcmp(name, "all_gather_uneven") == 0) {
        *ret_sent = bytes * (replicas - 1) / replicas;
        return price_of(reach, "all_gather", bytes / replicas);
    }
    if (strcmp(name, "recv") == 0) { /* from another device of the process: a copy */
        *ret_sent = bytes;
        return bytes * (reach->cost.move[2] > 0 ? reach->cost.move[2] : 0.1e-9);
    }
    return 0;
}

/* ---- the course of a step ---- */

enum { MOST_STARTED = 64 };

typedef struct course {
    double now, link; /* when the next instruction begins; when the link is free again */
    double sent, communication, exposed, compute, flops;
    int started;
    struct {
        const char *channel;
        double end;
    } pending[MOST_STARTED];
} course;

static void await(course *c, const char *channel)
{
    for (int i = 0; i < c->started; i++)
        if (strcmp(c->pending[i].channel, channel) == 0 && c->pending[i].end > c->now) {
            c->exposed += c->pending[i].end - c->now;
            c->now = c->pending[i].end;
        }
}

static void meet(course *c, const tutti_reach *reach, const tutti_node *node)
{
    double sent, seconds = price(reach, node, &sent);
    const tutti_attr *starts = tutti_attr_find(node->attrs, node->attr_count, "starts");
    c->sent += sent;
    c->communication += seconds;
    double begin = fmax(c->now, c->link);
    c->link = begin + seconds;
    if (starts && starts->value.i && c->started < MOST_STARTED) {
        c->pending[c->started].channel = tutti__str(node, "channel");
        c->pending[c->started++].end = c->link;
        return;
    }
    c->exposed += c->link - c->now;
    c->now = c->link;
}

static course follow(const tutti_timed_list *list, const tutti_reach *reach, double slowdown)
{
    course c = {0};
    for (size_t i = 0; i < list->count; i++) {
        const tutti_timed *timed = &list->data[i];
        c.flops += timed->node ? tutti__node_flops(timed->node) : 0;
        if (timed->node && tutti__is(timed->node, "all_reduce_wait")) {
            await(&c, tutti__str(timed->node, "channel"));
        } else if (timed->left_out && timed->node) {
            meet(&c, reach, timed->node);
        } else {
            c.compute += timed->seconds * slowdown;
            c.now += timed->seconds * slowdown;
        }
    }
    return c;
}

void tutti__forecast(const tutti_rehearsal *rehearsal, const tutti_reach *reach, double slowdown,
                     tutti_forecast *ret)
{
    const tutti_usage *u = &rehearsal->usage;
    double local = rehearsal->count > 0 ? rehearsal->count : 1;
    tutti_forecast f = {.strategy = "one_device",
                        .replicas = reach->processes * reach->local,
                        .timed = rehearsal->whole,
                        .weights = (double)u->weights / local,
                        .slots = (double)u->slots / local,
                        .joint = (double)u->joint / local,
                        .gradients = (double)u->shared / local,
                        .activations = (double)(u->arena + u->constants) / local,
                        .data = (double)u->data / local};
    f.total = f.weights + f.slots + f.gradients + f.activations + f.data;
    for (int i = 0; rehearsal->whole && i < rehearsal->count; i++) {
        course c = follow(&rehearsal->devices[i], reach, slowdown);
        f.flops = fmax(f.flops, c.flops);
        f.sent = fmax(f.sent, c.sent);
        f.communication = fmax(f.communication, c.communication);
        if (c.now <= f.step)
            continue;
        f.step = c.now;
        f.compute = c.compute;
        f.exposed = c.exposed;
    }
    f.efficiency = f.step > 0 ? f.compute / f.step : 0;
    *ret = f;
}

/* ---- a strategy at hand ---- */

tutti_status tutti__reach_of(tutti_strategy *strategy, bool measures, tutti_reach *ret)
{
    *ret = (tutti_reach){.processes = 1, .local = 1};
    const tutti_team *team = strategy ? strategy->team : NULL;
    if (!team || team->size < 2)
        return TUTTI_OK;
    ret->local = team->local;
    ret->processes = team->size / team->local;
    ret->algorithm = team->algorithm;
    if (team->inner) {
        tutti_comm_get_cost(team->inner[0], &ret->inner);
        if (measures)
            TUTTI_TRY(tutti__team_cost(strategy->team, &ret->inner));
        ret->cost = ret->inner;
        ret->memory = true;
    }
    if (team->world) {
        int peer = tutti_comm_rank(team->world) == 0 ? 1 : 0;
        tutti_comm_get_cost(team->world, &ret->cost);
        ret->memory = strcmp(tutti_comm_engine(team->world, peer), "shm") == 0 &&
                      tutti_comm_hosts(team->world) == 1;
    }
    return TUTTI_OK;
}

tutti_status tutti__forecast_join(const tutti_strategy *strategy, tutti_forecast *f)
{
    double worst[] = {f->compute, f->exposed, f->total, f->timed ? 0 : 1};
    if (!strategy || !strategy->team || !strategy->team->world)
        return TUTTI_OK;
    TUTTI_TRY(
        tutti_comm_all_reduce(strategy->team->world, worst, worst, 4, TUTTI_F64, TUTTI_MAX, NULL));
    f->compute = worst[0];
    f->exposed = worst[1];
    f->timed = worst[3] == 0;
    f->step = f->compute + f->exposed;
    f->efficiency = f->step > 0 ? f->compute / f->step : 0;
    return TUTTI_OK;
}

tutti_status tutti__form_rehearse(tutti_model *model, tutti_engine *engine, const tutti_form *form,
                                  int64_t batch, int count, tutti_tensor *const *tensors,
                                  tutti_rehearsal *ret)
{
    tutti_edge feeds[3 * 64];
    tutti_node *target = form->target.node;
    tutti_rows rows = {0};
    bool own = engine == model->engine; /* another one cuts the rows itself */
    if (own)
        TUTTI_TRY(tutti__rows_take(model, batch, count, tensors, &rows));
    for (int i = 0; i < count; i++)
        feeds[i] = tutti__edge(form->feeds.data[i]);
    tutti_ask ask = {.feed_count = count,
                     .feeds = feeds,
                     .values = own ? rows.tensors : tensors,
                     .target_count = 1,
                     .targets = &target,
                     .batch = own ? rows.batch : 0};
    tutti_status status = tutti__engine_rehearse(engine, model->graph, &ask, ret);
    tutti__rows_release(&rows);
    return status;
}

tutti_status tutti__forecast_form(tutti_model *model, tutti_form *form, int64_t batch, int count,
                                  tutti_tensor *const *tensors, tutti_forecast *ret)
{
    tutti_strategy *strategy = tutti__model_strategy(model);
    tutti_reach reach;
    tutti_rehearsal rehearsal = {0};
    tutti_forecast f;
    TUTTI_TRY(tutti__form_rehearse(model, model->engine, form, batch, count, tensors, &rehearsal));
    tutti_status status = tutti__reach_of(strategy, rehearsal.whole, &reach);
    if (status == TUTTI_OK)
        tutti__forecast(&rehearsal, &reach, 1, &f);
    tutti__rehearsal_free(&rehearsal);
    TUTTI_TRY(status);
    if (strategy)
        f.strategy = tutti_strategy_name(strategy);
    TUTTI_TRY(tutti__forecast_join(strategy, &f));
    *ret = f;
    return TUTTI_OK;
}

/* ---- in words ---- */

const char *tutti__seconds_text(double seconds, char ret[32])
{
    if (seconds < 1e-3)
        snprintf(ret, 32, "%.0f us", seconds * 1e6);
    else
        snprintf(ret, 32, "%.2f ms", seconds * 1e3);
    return ret;
}

static void add_head(tutti_text *text, const tutti_model *model, const tutti_strategy *s)
{
    tutti_comm *world = s ? s->team->world : NULL;
    int local = s ? tutti_strategy_local(s) : 1;
    tutti__text_add(text, "%s   ", model->name);
    if (world)
        tutti__text_add(text, "%d workers x %d %s on %d host%s   ", tutti_strategy_workers(s),
                        local, local == 1 ? tutti_strategy_device(s, 0) : "devices",
                        tutti_comm_hosts(world), tutti_comm_hosts(world) == 1 ? "" : "s");
    else
        tutti__text_add(text, "%d device%s   ", local, local == 1 ? "" : "s");
    tutti__text_add(text, "strategy %s%s", s ? tutti_strategy_name(s) : "one_device",
                    s && s->options.deterministic ? " (deterministic)" : "");
    if (s && s->team->size > 1)
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
    if (f->joint > 0)
        tutti__text_add(
            text,
            "  the devices of a process keep large variables once between them, and each "
            "updates its part: %s of them\n",
            tutti__bytes_text(f->joint, a));
}

static void add_time(tutti_text *text, const tutti_forecast *f)
{
    char a[32], b[32], c[32], d[32], e[32];
    if (!f->timed) {
        tutti__text_add(text, "  per step: time not predicted: a device cannot rehearse it\n");
        return;
    }
    tutti__text_add(text, "  per step: predicted %s = %s compute", tutti__seconds_text(f->step, a),
                    tutti__seconds_text(f->compute, b));
    if (f->replicas > 1)
        tutti__text_add(text, " + %s exposed of %s communication, %s sent, efficiency %.0f %%",
                        tutti__seconds_text(f->exposed, c),
                        tutti__seconds_text(f->communication, d), tutti__bytes_text(f->sent, e),
                        100 * f->efficiency);
    tutti__text_add(text, "\n");
}

tutti_status tutti__forecast_text(tutti_model *model, const tutti_forecast *forecast,
                                  char **ret_text)
{
    tutti_text text = {0};
    add_head(&text, model, tutti__model_strategy(model));
    add_memory(&text, forecast);
    add_time(&text, forecast);
    if (text.failed) {
        tutti__text_free(&text);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast");
    }
    *ret_text = text.data;
    return TUTTI_OK;
}
