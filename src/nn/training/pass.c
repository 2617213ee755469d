/* pass.c: one pass over a dataset, batch by batch, to train or to evaluate. */
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/world.h"
#include "nn/model/model_strategy.h"
#include "nn/training/callback.h"
#include "nn/training/forecast_model.h"

double tutti__fit_since(int64_t start)
{
    return 1e-9 * (double)(tutti__now_ns() - start);
}

/* Once, before the first step, which is compiled by this; on all processes. */
static tutti_status foretell(tutti_fit *fit, tutti_step_function *function, int64_t batch, bool own,
                             int count, tutti_tensor *const *tensors)
{
    tutti_job *job = fit->model->job;
    bool chooses = strcmp(tutti_flag_text(job, "strategy", ""), "auto") == 0;
    bool spread = tutti_strategy_replicas(tutti__model_strategy(fit->model)) > 1;
    bool shown = fit->accounts && (tutti_flag_on(job, "forecast") || spread);
    if (fit->forecast || (!shown && !chooses))
        return TUTTI_OK;
    if (!(fit->forecast = calloc(1, sizeof *fit->forecast)))
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a forecast");
    fit->forecasts = 1;
    TUTTI_TRY(tutti__forecast_step_function(fit->model, function, batch, own, count, tensors,
                                            fit->forecast));
    return chooses ? tutti__fit_choose(fit, function, batch, count, tensors) : TUTTI_OK;
}

/* What is wrong with the examples is said with where they are. */
static tutti_status name_batch(const tutti_fit *fit, bool training, tutti_status status)
{
    if (status != TUTTI_INVALID && status != TUTTI_OUT_OF_RANGE)
        return status;
    if (!training)
        return tutti__error_prefix(status, "batch %lld of the data to evaluate on",
                                   (long long)fit->event.batch + 1);
    return tutti__error_prefix(status, "epoch %d, batch %lld", fit->event.epoch + 1,
                               (long long)fit->event.batch + 1);
}

/* One batch through a form, with its events. */
static tutti_status run_batch(tutti_fit *fit, const tutti_wiring *wiring, tutti_element *element,
                              bool training)
{
    tutti_model *model = fit->model;
    tutti_tensor *tensors[TUTTI_MAX_COMPONENTS];
    tutti_step_function *function;
    for (int i = 0; i < wiring->count; i++) {
        if (wiring->order[i] >= element->count)
            return tutti_fail(TUTTI_INVALID, "an element of the data has only %d components",
                              element->count);
        tensors[i] = element->tensors[wiring->order[i]];
    }
    TUTTI_TRY(tutti__step_function_for(model, training, wiring->count, tensors, &function));
    if (training)
        TUTTI_TRY(foretell(fit, function, element->rows, element->own, wiring->count, tensors));
    fit->logs_read = false;
    fit->event.logs = NULL;
    TUTTI_TRY(tutti__fit_tell(fit, TUTTI_AT_EVENT(batch_begin)));
    if (training)
        tutti__strategy_at_step(tutti__model_strategy(model), model->trainer->steps + 1);
    int64_t start = tutti__now_ns();
    tutti_status status = tutti__step_function_run(model, function, element->rows, element->own,
                                                   wiring->count, tensors);
    TUTTI_TRY(name_batch(fit, training, status));
    if (training)
        fit->event.step = ++model->trainer->steps;
    fit->event.step_seconds = tutti__fit_since(start);
    fit->event.seconds = tutti__fit_since(fit->epoch_started);
    int64_t examples = element->rows > 0 ? element->rows : tutti_tensor_dims(tensors[0])[0];
    fit->event.examples += examples;
    if (training)
        fit->samples = model->trainer->samples += examples;
    return TUTTI_OK;
}

/* Whether it is time for processes to ask each other: all say the same. */
static bool is_time_to_ask(const tutti_fit *fit, bool training)
{
    const tutti_trainer *trainer = fit->model->trainer;
    if (!training)
        return fit->event.batch % TUTTI_STEPS_UNASKED == 0;
    return trainer->gathered == 0 && trainer->steps >= trainer->asked;
}

/* A signal ends the training after the same step everywhere, or validation between its batches. A
 * step of several batches is finished first, where replicas gather its gradients by themselves: put
 * together earlier they would be added in another order. */
static tutti_status look_for_signals(tutti_fit *fit, bool training)
{
    tutti_trainer *trainer = fit->model->trainer;
    if (!tutti__model_shares(fit->model)) {
        bool halfway = training && trainer->gathered > 0 &&
                       tutti__strategy_rewrites(tutti__model_strategy(fit->model));
        trainer->interrupted = !halfway && tutti_interrupted();
        return TUTTI_OK;
    }
    if (!is_time_to_ask(fit, training))
        return TUTTI_OK;
    trainer->asked = trainer->steps + TUTTI_STEPS_UNASKED;
    tutti_poll all = {.stop = trainer->asks_stop,
                      .rate = tutti_get_learning_rate(fit->model),
                      .step = trainer->steps};
    TUTTI_TRY(tutti__processes_poll(tutti__model_strategy(fit->model), &all));
    trainer->stop = trainer->stop || all.stop;
    trainer->interrupted = all.interrupted;
    return TUTTI_OK;
}

tutti_status tutti__fit_look_for_stop(const tutti_fit *fit)
{
    tutti_trainer *trainer = fit->model->trainer;
    double stops = trainer->asks_stop;
    if (!tutti__model_shares(fit->model) || trainer->stop || trainer->interrupted)
        return TUTTI_OK;
    TUTTI_TRY(tutti__processes_reduce(tutti__model_strategy(fit->model), "whether to stop",
                                      TUTTI_F64, 1, &stops, TUTTI_MAX));
    trainer->stop = stops != 0;
    return TUTTI_OK;
}

tutti_status tutti__fit_batches(tutti_fit *fit, tutti_iterator *iterator,
                                const tutti_wiring *wiring, int64_t limit, bool training)
{
    tutti_trainer *trainer = fit->model->trainer;
    bool listens = trainer->fit == fit; /* the signal ends a program that only evaluates */
    for (; limit <= 0 || fit->event.batch < limit; fit->event.batch++) {
        tutti_element element;
        if (listens)
            TUTTI_TRY(look_for_signals(fit, training));
        if (listens && ((training && trainer->stop) || trainer->interrupted))
            break;
        TUTTI_TRY(tutti_next_element(iterator, &element));
        fit->event.waited_seconds =
            1e-9 * (double)(tutti_iterator_waited_ns(iterator) - fit->waited_before);
        if (element.count == 0) {
            fit->event.batch_count = fit->event.batch;
            break;
        }
        tutti_status status = run_batch(fit, wiring, &element, training);
        if (training && status == TUTTI_OK) {
            trainer->epoch = fit->event.epoch;
            trainer->batch = fit->event.batch + 1;
            trainer->ended = false;
            tutti_iterator_save(iterator, &trainer->position);
        }
        if (status == TUTTI_OK)
            status = tutti__fit_tell(fit, TUTTI_AT_EVENT(batch_end));
        if (training && status == TUTTI_OK)
            status = tutti__fit_look_for_nan(fit, &element);
        tutti_element_release(&element);
        TUTTI_TRY(status);
    }
    return training ? tutti__fit_look_for_nan(fit, NULL) : TUTTI_OK;
}

int64_t tutti__count_batches(const tutti_model *model, tutti_dataset *data, bool evaluates,
                             int64_t limit)
{
    tutti_dataset_info info;
    int64_t count = -1;
    if (tutti__rows_counted(model, data, evaluates) &&
        tutti_dataset_describe(data, &info) == TUTTI_OK && info.cardinality >= 0)
        count = info.cardinality;
    return limit > 0 && (count < 0 || limit < count) ? limit : count;
}
