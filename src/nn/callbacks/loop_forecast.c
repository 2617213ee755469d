/* loop_forecast.c: what a step of a loop that is written by hand will take, before it is taken: of
 * every program that trains, when its variables are there. On a tape that is its second step: the
 * first one makes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/log.h"
#include "exec/plan/share.h"
#include "exec/tape/eager.h"
#include "nn/callbacks/loop.h"
#include "nn/model/model_strategy.h"

/* A program that trains is shown once, however often it is compiled. */
static bool is_known(const tutti_loop_forecast *l, const tutti_plan *plan)
{
    for (int i = 0; i < l->count; i++)
        if (l->updates[i] == tutti__plan_updates(plan))
            return true;
    return l->count == TUTTI_LOOP_PROGRAMS;
}

static tutti_status print_table(tutti_progress *p, const tutti_made *made)
{
    char *text;
    TUTTI_TRY(tutti__forecast_table_of(p->job, p->forecast.name, made, &text));
    fputs(text, stdout);
    free(text);
    tutti__job_stop(p->job);
    return TUTTI_OK;
}

static tutti_status foretell(tutti_progress *p, const tutti_made *made)
{
    tutti_loop_forecast *l = &p->forecast;
    if (!p->fit.forecast && !(p->fit.forecast = calloc(1, sizeof *p->fit.forecast)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast");
    made->run->between = tutti__forecast_between(&l->past, made);
    TUTTI_TRY(tutti__forecast_plan(made, p->fit.forecast));
    l->updates[l->count++] = tutti__plan_updates(made->plan);
    if (l->count > 1)
        snprintf(l->name, sizeof l->name, "program %d", l->count);
    p->fit.program = l->name;
    p->fit.strategy = tutti__engine_strategy(made->run->owner);
    p->fit.forecasts = l->count;
    return tutti__fit_tell(&p->fit, TUTTI_AT_EVENT(batch_begin));
}

static void made_one(void *context, const tutti_made *made)
{
    tutti_progress *p = context;
    tutti_loop_forecast *l = &p->forecast;
    if (!made->plan->trains || !tutti__job_able(p->job))
        return;
    bool is_new = tutti__plan_is_steady(made->run->state, made->plan) && !is_known(l, made->plan);
    if (is_new)
        tutti_job_fail(p->job, l->plans_only ? print_table(p, made) : foretell(p, made));
    tutti__forecast_note(&l->past, made, is_new && p->fit.forecast ? p->fit.forecast->step : 0);
}

/* A strategy that was asked for, and that the loop's session was not given. */
static void warn_of_unused(tutti_job *job)
{
    tutti_strategy *asked = tutti_job_strategy(job);
    if (tutti_strategy_replicas(asked) > 1 && tutti_strategy_rank(asked) <= 0)
        tutti__log(TUTTI_LOG_WARNING,
                   "strategy %s is not used: the session of this loop was opened without it "
                   "(.strategy = tutti_job_strategy(job)), so each process trains alone, on one "
                   "device",
                   tutti_strategy_name(asked));
}

tutti_status tutti__loop_foretell(tutti_progress *p, const tutti_progress_options *options)
{
    tutti_engine *engine = options->session ? tutti__session_engine(options->session) : NULL;
    tutti_loop_forecast *l = &p->forecast;
    if (options->model)
        TUTTI_TRY(tutti__model_engine(options->model));
    if (options->eager || options->model)
        engine = options->eager ? options->eager->engine : options->model->engine;
    bool bar = !tutti_flag_on(p->job, "json") && !tutti_flag_on(p->job, "quiet");
    l->plans_only = tutti_flag_text(p->job, "plan-ranks", NULL) != NULL;
    if (!engine && l->plans_only)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s trains by a loop that names no session, tape or "
                          "model to tutti_progress_open: there is nothing to plan",
                          p->job->program);
    if (!engine)
        return TUTTI_OK;
    bool spread = tutti_strategy_replicas(tutti__engine_strategy(engine)) > 1;
    if (!spread)
        warn_of_unused(p->job);
    if (!l->plans_only && !tutti_flag_on(p->job, "forecast") && !(spread && bar))
        return TUTTI_OK;
    snprintf(l->name, sizeof l->name, "%s", p->job->program);
    l->engine = engine;
    tutti__engine_set_watch(
        engine, &(tutti_engine_watch){.made = made_one, .context = p, .imagines = l->plans_only});
    return TUTTI_OK;
}

void tutti__loop_foretold(tutti_progress *p)
{
    if (p->forecast.engine)
        tutti__engine_set_watch(p->forecast.engine, &(tutti_engine_watch){0});
    p->forecast.engine = NULL;
}
