/* optimizer_applied.c: the optimizers that users apply to a graph, by name. Two of one name share
 * the variables of that name, rate and step count, so that they must be the same. A tape's are kept
 * as long as its variables, past the step. */
#include <math.h>
#include <string.h>

#include "nn/optimizers/optimizer.h"

typedef struct applied {
    struct applied *next;
    tutti_optimizer optimizer;
} applied;

const tutti_optimizer *tutti__optimizer_applied(const tutti_graph *graph, const char *name)
{
    for (const applied *at = graph->optimizers; at; at = at->next)
        if (strcmp(at->optimizer.name, name) == 0)
            return &at->optimizer;
    return NULL;
}

const tutti_optimizer *tutti__optimizer_applied_at(const tutti_graph *graph, int index)
{
    const applied *at = graph->optimizers;
    while (at && index-- > 0)
        at = at->next;
    return at ? &at->optimizer : NULL;
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static tutti_status optimizer_applied_refuse(const tutti_optimizer *optimizer, const char *key,
                                             double first, double now)
{
    return tutti_fail(TUTTI_INVALID,
                      "optimizer '%s' was applied with %s %g before, now it has %g: under one name "
                      "both would have one learning rate and one step count; give one of them a "
                      ".name of its own (to change the rate of one, assign to "
                      "tutti_learning_rate)",
                      optimizer->name, key, first, now);
}

static bool same_schedule(const tutti_schedule *a, const tutti_schedule *b)
{
    return a->def == b->def && a->count == b->count && a->fn == b->fn && a->context == b->context &&
           memcmp(a->numbers, b->numbers, sizeof a->numbers) == 0;
}

tutti_status tutti__optimizer_check_applied(const tutti_graph *graph,
                                            const tutti_optimizer *optimizer)
{
    const tutti_optimizer *first = tutti__optimizer_applied(graph, optimizer->name);
    tutti_setting before[TUTTI_OPTIMIZER_KEYS], now[TUTTI_OPTIMIZER_KEYS];
    if (!first)
        return TUTTI_OK;
    if (first->def != optimizer->def)
        return tutti_fail(TUTTI_INVALID,
                          "two optimizers, %s and %s, are named '%s'; give one of them another "
                          ".name",
                          first->def->name, optimizer->def->name, optimizer->name);
    double rate = tutti__optimizer_rate(first, 0), other = tutti__optimizer_rate(optimizer, 0);
    if (!same(rate, other))
        return optimizer_applied_refuse(optimizer, "learning_rate", rate, other);
    int count = tutti__optimizer_settings(first, TUTTI_OPTIMIZER_KEYS, before);
    tutti__optimizer_settings(optimizer, TUTTI_OPTIMIZER_KEYS, now);
    for (int i = 0; i < count && i < TUTTI_OPTIMIZER_KEYS; i++)
        if (strcmp(now[i].key, "learning_rate") != 0 &&
            !same(before[i].values[0], now[i].values[0]))
            return optimizer_applied_refuse(optimizer, now[i].key, before[i].values[0],
                                            now[i].values[0]);
    const char *unlike = !tutti__param_groups_same(first, optimizer) ? "parameter groups or decay"
                         : !same_schedule(&first->schedule, &optimizer->schedule) ? "a schedule"
                                                                                  : NULL;
    return unlike ? tutti_fail(TUTTI_INVALID,
                               "optimizer '%s' was applied with other settings before, of %s; give "
                               "one of them a .name of its own",
                               optimizer->name, unlike)
                  : TUTTI_OK;
}

void tutti__optimizer_note_applied(tutti_graph *graph, const tutti_optimizer *optimizer)
{
    tutti_arena *lasts = graph->lasting ? graph->lasting : &graph->arena;
    if (tutti__optimizer_applied(graph, optimizer->name))
        return;
    applied *note = tutti__arena_take(lasts, sizeof *note);
    char *name = tutti__arena_string(lasts, optimizer->name);
    if (!note || !name)
        return; /* a check less: the update itself is made */
    *note = (applied){.next = graph->optimizers, .optimizer = *optimizer};
    note->optimizer.name = name;
    if (tutti__param_groups_keep(&note->optimizer, lasts) != TUTTI_OK)
        return;
    graph->optimizers = note;
}
