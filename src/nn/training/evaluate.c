/* evaluate.c: a model's losses and metrics over a dataset. */
#include <stdlib.h>

#include "base/world.h"
#include "data/dataset.h"
#include "nn/model/model_strategy.h"
#include "nn/training/callback.h"

tutti_status tutti__evaluate(tutti_model *model, tutti_dataset *data, int64_t steps, tutti_fit *fit,
                             tutti_logs *ret_logs)
{
    tutti_wiring wiring;
    tutti_event before = fit->event;
    TUTTI_TRY(tutti__model_meet(model, data, true, &wiring));
    TUTTI_TRY(tutti__model_meet_targets(model, data, &wiring));
    TUTTI_TRY(tutti__rows_begin(model, data, true));
    tutti_iterator *iterator = tutti__iterate(data, 0);
    tutti__rows_end(data);
    if (!iterator)
        return tutti_job_check(model->job);
    int64_t started = fit->epoch_started;
    fit->epoch_started = tutti__now_ns();
    fit->event.validating = true;
    fit->event.batch = 0;
    fit->event.examples = 0;
    fit->event.batch_count = tutti__count_batches(model, data, true, steps);
    tutti_status status = tutti__track_reset(model, false);
    if (status == TUTTI_OK)
        status = tutti__fit_batches(fit, iterator, &wiring, steps, false);
    bool interrupted = model->trainer->fit == fit && model->trainer->interrupted;
    if (status == TUTTI_OK && fit->event.batch == 0 && !interrupted)
        status = tutti__no_elements(data, "the data to evaluate on");
    tutti_iterator_close(iterator);
    fit->event = before;
    fit->epoch_started = started;
    TUTTI_TRY(status);
    if (interrupted)
        return TUTTI_OK; /* a part of the data says nothing */
    return tutti__track_read(model, false, fit->event.epochs > 0, ret_logs);
}

tutti_status tutti_evaluate_with(tutti_model *model, tutti_dataset *data,
                                 const tutti_evaluate_options *options, tutti_logs *ret_logs)
{
    tutti_logs logs = {0};
    if (ret_logs)
        *ret_logs = logs; /* whoever looks into it after a failure finds nothing */
    TUTTI_TRY(tutti__need_trainer(model));
    tutti_fit *fit = calloc(1, sizeof *fit);
    if (!fit)
        return tutti__model_fail(model, tutti_fail(TUTTI_NO_MEMORY, "no memory to evaluate"));
    fit->model = fit->event.model = model;
    tutti_status status = tutti__evaluate(model, data, options->steps, fit, &logs);
    tutti__fit_end(fit);
    free(fit);
    if (status == TUTTI_OK && ret_logs)
        *ret_logs = logs;
    return tutti__model_fail(model, status);
}
