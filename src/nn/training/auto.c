/* auto.c: what --strategy auto comes to. The job says what there is: processes, or devices of this
 * one. Where one device would be faster than several of one process, it is taken. */
#include <stdio.h>

#include "nn/model/model_strategy.h"
#include "nn/training/callback.h"
#include "nn/training/forecast_model.h"

/* Below this share of the other one's step: forecasts are not exact, and changing is not free. */
#define BETTER 0.97

/* The whole batch on the strategy's first device. */
static tutti_status forecast_alone(tutti_fit *fit, tutti_step_function *function, int64_t batch,
                                   int count, tutti_tensor *const *tensors, tutti_forecast *ret)
{
    tutti_strategy *in_force = tutti__model_strategy(fit->model);
    tutti_strategy_options options = {.struct_size = sizeof options,
                                      .devices = tutti_strategy_device(in_force, 0)};
    tutti_forecast_reach alone = {.processes = 1, .local = 1};
    tutti_rehearsal rehearsal = {0};
    tutti_strategy *s = tutti__strategy_imagine("one_device", 1, 0, &options);
    if (!s)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast");
    tutti_status status =
        tutti__forecast_imagined(fit->model, function, count, tensors, s, &rehearsal);
    if (status == TUTTI_OK)
        status = tutti__forecast(&rehearsal, &alone, 1, ret);
    tutti__rehearsal_free(&rehearsal);
    tutti_strategy_close(s);
    return status;
}

static void say(tutti_fit *fit, const char *what, const char *why)
{
    snprintf(fit->chosen, sizeof fit->chosen, "auto: %s: %s", what, why);
}

tutti_status tutti__fit_choose(tutti_fit *fit, tutti_step_function *function, int64_t batch,
                               int count, tutti_tensor *const *tensors)
{
    tutti_model *model = fit->model;
    tutti_strategy *s = tutti__model_strategy(model);
    int workers = tutti_strategy_workers(s), replicas = tutti_strategy_replicas(s);
    tutti_forecast alone;
    char why[200], a[32], b[32];
    if (replicas < 2) {
        say(fit, "one_device", "the job has one process and names one device");
        return TUTTI_OK;
    }
    if (workers > 1) {
        snprintf(why, sizeof why, "the job has %d workers; %s a step is predicted", workers,
                 tutti__seconds_text(fit->forecast->step, a));
        say(fit, tutti_strategy_name(s), why);
        return TUTTI_OK;
    }
    if (s->options.deterministic || !fit->forecast->timed) {
        say(fit, tutti_strategy_name(s),
            fit->forecast->timed ? "several devices are named; bits are the same on one"
                                 : "several devices are named, and not all can rehearse");
        return TUTTI_OK;
    }
    TUTTI_TRY(forecast_alone(fit, function, batch, count, tensors, &alone));
    bool gathers = alone.timed && alone.step < BETTER * fit->forecast->step &&
                   model->trainer->steps == 0 && !model->trainer->restored;
    snprintf(why, sizeof why, "%s a step is predicted on %d devices, %s on one",
             tutti__seconds_text(fit->forecast->step, a), replicas,
             tutti__seconds_text(alone.step, b));
    say(fit, gathers ? "one_device" : tutti_strategy_name(s), why);
    if (!gathers)
        return TUTTI_OK;
    *fit->forecast = alone;
    return tutti__engine_gather(model->engine);
}
