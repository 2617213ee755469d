/* fit.c: epochs of steps over a dataset, with validation and callbacks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/world.h"
#include "data/dataset.h"
#include "nn/model/model_strategy.h"
#include "nn/training/callback.h"
#include "nn/training/consistency.h"

typedef struct plan {
    tutti_dataset *data, *validation;
    tutti_wiring wiring;
    int first, last; /* epochs */
    int64_t steps, validation_steps;
    int validation_every;
    /* Data whose end is not known, in epochs of so many steps: each goes on where the last one
     * stopped. */
    bool flows;
    bool restores; /* the data goes on from trainer->position */
    tutti_iterator *iterator;
} plan;

static tutti_status open_data(tutti_fit *fit, plan *p)
{
    TUTTI_TRY(tutti__rows_begin(fit->model, p->data, false));
    if (!p->iterator && p->restores)
        p->iterator = tutti_iterate_from(p->data, &fit->model->trainer->position);
    else if (!p->iterator)
        p->iterator = tutti__iterate(p->data, (uint64_t)fit->event.epoch);
    p->restores = false;
    tutti__rows_end(p->data);
    fit->waited_before = tutti_iterator_waited_ns(p->iterator);
    return p->iterator ? TUTTI_OK : tutti_job_check(fit->model->job);
}

static void close_data(plan *p)
{
    tutti_iterator_close(p->iterator);
    p->iterator = NULL;
}

/* The batches of an epoch. Data that flows and is at its end begins anew. */
static tutti_status run_data(tutti_fit *fit, plan *p)
{
    tutti_trainer *trainer = fit->model->trainer;
    bool goes_on = p->iterator != NULL;
    TUTTI_TRY(open_data(fit, p));
    tutti_status status = tutti__fit_batches(fit, p->iterator, &p->wiring, p->steps, true);
    bool over = fit->event.batch < p->steps && !trainer->stop && !trainer->interrupted;
    if (status != TUTTI_OK || !p->flows || over)
        close_data(p);
    TUTTI_TRY(status);
    return goes_on && over && fit->event.batch == 0 ? run_data(fit, p) : TUTTI_OK;
}

static tutti_status run_epoch(tutti_fit *fit, plan *p)
{
    tutti_model *model = fit->model;
    bool resumed = model->trainer->resumed && model->trainer->epoch == fit->event.epoch;
    tutti_logs logs = {0};
    fit->event.batch = resumed ? model->trainer->batch : 0;
    fit->event.examples = 0;
    model->trainer->resumed = false;
    fit->event.batch_count = tutti__count_batches(model, p->data, false, p->steps);
    fit->epoch_started = tutti__now_ns();
    fit->event.seconds = fit->event.waited_seconds = 0;
    fit->event.logs = NULL;
    TUTTI_TRY(tutti__fit_tell(fit, TUTTI_AT_EVENT(epoch_begin)));
    if (!resumed)
        TUTTI_TRY(tutti__track_reset(model, true));
    tutti_status status = run_data(fit, p);
    fit->account.waited += fit->event.waited_seconds;
    TUTTI_TRY(status);
    if (model->trainer->interrupted) /* the epoch is not over; it is told of when it is resumed */
        return TUTTI_OK;
    if (fit->event.batch == 0 && !model->trainer->stop)
        return tutti__no_elements(p->data, "the data to train on");
    TUTTI_TRY(tutti__track_read(model, true, false, &logs));
    bool last = fit->event.epoch + 1 == p->last;
    if (p->validation && ((fit->event.epoch + 1) % p->validation_every == 0 || last))
        TUTTI_TRY(tutti__evaluate(model, p->validation, p->validation_steps, fit, &logs));
    if (model->trainer->interrupted) /* while it validated, which it does again when resumed */
        return TUTTI_OK;
    tutti_logs_set(&logs, "lr", tutti_get_learning_rate(model));
    fit->event.seconds = tutti__fit_since(fit->epoch_started);
    fit->event.logs = &logs;
    model->trainer->ended = true;
    model->trainer->data_ended =
        fit->event.batch == fit->event.batch_count && fit->event.batch != p->steps;
    model->trainer->last = fit->last = logs;
    fit->done = fit->event.epoch + 1;
    status = tutti__history_add(model->trainer->history, &logs);
    if (status == TUTTI_OK)
        status = tutti__fit_tell(fit, TUTTI_AT_EVENT(epoch_end));
    fit->event.logs = NULL;
    return status;
}

/* Where a restored training goes on: in its epoch, if only to end it, or with the next when that
 * one is over. Where nobody knows how many batches an epoch has, as of processes that read apart,
 * it is over when it had ended with its data: another number of them may have more. */
static void resume(const tutti_model *model, plan *p)
{
    tutti_trainer *trainer = model->trainer;
    int64_t count = tutti__count_batches(model, p->data, false, p->steps);
    if (!trainer->resumed)
        return;
    bool complete = trainer->ended && (count < 0 ? trainer->data_ended : trainer->batch >= count);
    int epoch = trainer->epoch + complete;
    trainer->resumed = !complete && epoch >= p->first;
    p->restores = trainer->resumed || (p->flows && epoch >= p->first);
    p->first = epoch > p->first ? epoch : p->first;
}

/* Is the number of elements unknown, or endless? */
static bool has_no_end(tutti_dataset *data)
{
    tutti_dataset_info info;
    return tutti_dataset_describe(data, &info) == TUTTI_OK && info.cardinality < 0;
}

/* Processes that train different things are found out before they mix them. */
static tutti_status compare_processes(const tutti_fit *fit, const plan *p)
{
    return tutti__training_consistent(fit->model, &(tutti_training){.data = p->data,
                                                                    .batch = fit->batch,
                                                                    .first = p->first,
                                                                    .last = p->last,
                                                                    .steps = p->steps});
}

static tutti_status run_epochs(tutti_fit *fit, plan *p)
{
    tutti_model *model = fit->model;
    TUTTI_TRY(tutti__model_meet(model, p->data, true, &p->wiring));
    TUTTI_TRY(compare_processes(fit, p));
    TUTTI_TRY(tutti__model_meet_targets(model, p->data, &p->wiring));
    fit->data = p->data;
    TUTTI_TRY(tutti__history_begin(model->trainer));
    model->trainer->stop = model->trainer->asks_stop = model->trainer->interrupted = false;
    model->trainer->asked = 0;
    fit->event.epochs = p->last;
    tutti__fit_account_begin(fit);
    TUTTI_TRY(tutti__fit_tell(fit, TUTTI_AT_EVENT(train_begin)));
    TUTTI_TRY(
        tutti__weights_consistent(model)); /* callbacks may have set some, of one process only */
    if (model->trainer->recalls && model->trainer->memory)
        TUTTI_TRY(tutti__fit_recall(fit, model->trainer->memory));
    model->trainer->recalls = false;
    p->flows = p->steps > 0 && has_no_end(p->data);
    fit->goes_on = model->trainer->resumed || tutti_flag_on(model->job, "resume");
    resume(model, p);
    fit->event.step = model->trainer->steps;
    fit->done = p->first;
    fit->resumed = model->trainer->steps;
    fit->samples = model->trainer->samples;
    fit->last = model->trainer->last;
    tutti_status status = tutti__fit_look_for_stop(fit); /* who begins may ask, too */
    bool stop = model->trainer->stop;
    if (p->first >= p->last && model->trainer->last.count > 0) /* it was over before */
        status = tutti__history_add(model->trainer->history, &model->trainer->last);
    for (int epoch = p->first; epoch < p->last && status == TUTTI_OK && !stop; epoch++) {
        fit->event.epoch = epoch;
        status = run_epoch(fit, p);
        if (status == TUTTI_OK)
            status = tutti__fit_look_for_stop(fit);
        stop = model->trainer->interrupted || model->trainer->stop;
    }
    close_data(p);
    fit->event.interrupted = model->trainer->interrupted;
    TUTTI_TRY(status);
    TUTTI_TRY(tutti__fit_account_end(fit));
    return tutti__fit_tell(fit, TUTTI_AT_EVENT(train_end));
}

/* The first part to train on, the rest to validate on. */
static tutti_status split_data(const tutti_model *model, plan *p, double share)
{
    int64_t count = tutti__count_batches(model, p->data, false, 0);
    if (!(share > 0 && share < 1))
        return tutti_fail(TUTTI_INVALID, "validation_split is between 0 and 1, not %g", share);
    if (count < 2)
        return tutti_fail(TUTTI_INVALID,
                          "validation_split needs data of a known number of batches, at least 2");
    tutti_dataset_info info;
    TUTTI_TRY(tutti_dataset_describe(p->data, &info));
    if (info.reorders)
        return tutti_fail(TUTTI_INVALID,
                          "validation_split: the data is shuffled anew in each epoch, so that "
                          "examples to validate on would be trained on; cut it with tutti_take and "
                          "tutti_skip before tutti_shuffle, or shuffle with .same_order");
    int64_t kept = count - (int64_t)((double)count * share + 0.5);
    kept = kept < 1 ? 1 : kept == count ? count - 1 : kept;
    p->validation = tutti_skip(p->data, kept);
    p->data = tutti_take(p->data, kept);
    return p->validation && p->data ? TUTTI_OK : tutti_fail(TUTTI_INVALID, "cannot cut the data");
}

static tutti_status take_class_weights(tutti_model *model, const tutti_fit_options *options)
{
    tutti_trainer *trainer = model->trainer;
    tutti_tensor *weights = NULL, *before = trainer->class_weights;
    int64_t dims[] = {options->class_weights.count};
    if (options->class_weights.count > 0)
        TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 1, dims, &weights));
    for (int i = 0; i < options->class_weights.count; i++)
        tutti_tensor_set(weights, i, options->class_weights.weights[i]);
    if (weights && before ? !tutti_tensor_same(weights, before) : weights != before)
        tutti__trainer_drop_step(trainer); /* they stand in it */
    tutti_tensor_release(before);
    trainer->class_weights = weights;
    return TUTTI_OK;
}

/* For a checkpoint that is saved when the fit is over. */
static tutti_status keep_memory(tutti_fit *fit)
{
    char *memory;
    TUTTI_TRY(tutti__fit_remember(fit, &memory));
    free(fit->model->trainer->memory);
    fit->model->trainer->memory = memory;
    return TUTTI_OK;
}

static tutti_status fit_with(tutti_fit *fit, tutti_dataset *data, const tutti_fit_options *options)
{
    tutti_job *job = fit->model->job;
    plan p = {.data = data,
              .validation = options->validation,
              .first = options->initial_epoch,
              .last = (int)tutti_flag_int(job, "epochs", options->epochs > 0 ? options->epochs : 1),
              .steps = tutti_flag_int(job, "steps-per-epoch", options->steps_per_epoch),
              .validation_steps = options->validation_steps,
              .validation_every = options->validation_every > 0 ? options->validation_every : 1};
    TUTTI_TRY(tutti_job_check(job));
    if (options->epochs < 0 || p.last < 0 || p.first < 0 || p.steps < 0 || p.validation_steps < 0 ||
        options->validation_every < 0)
        return tutti_fail(TUTTI_INVALID,
                          "tutti_fit: epochs %d, initial_epoch %d, steps_per_epoch %lld, "
                          "validation_steps %lld, validation_every %d: none may be negative",
                          options->epochs < 0 ? options->epochs : p.last, p.first,
                          (long long)p.steps, (long long)p.validation_steps,
                          options->validation_every);
    if (!p.validation && options->validation_split != 0)
        TUTTI_TRY(split_data(fit->model, &p, options->validation_split));
    fit->validates = p.validation != NULL;
    TUTTI_TRY(take_class_weights(fit->model, options));
    TUTTI_TRY(tutti__fit_add_standard(fit, options->quiet));
    tutti_dataset_info info;
    fit->data = data;
    if (data && tutti_dataset_describe(data, &info) == TUTTI_OK)
        fit->batch = info.batch;
    tutti__interrupt_begin();
    fit->model->trainer->fit = fit;
    tutti_status status = run_epochs(fit, &p);
    fit->model->trainer->fit = NULL;
    tutti__interrupt_end();
    return status == TUTTI_OK ? keep_memory(fit) : status;
}

const tutti_history *tutti_fit_with(tutti_model *model, tutti_dataset *data,
                                    const tutti_fit_options *options)
{
    tutti_fit *fit = calloc(1, sizeof *fit);
    tutti_status status = TUTTI_OK;
    if (!fit)
        status = tutti__model_fail(model, tutti_fail(TUTTI_NO_MEMORY, "no memory to train"));
    for (int i = 0; i < options->callbacks.count; i++) {
        if (status == TUTTI_OK)
            status = tutti__fit_add(fit, options->callbacks.list[i]);
        else
            tutti_callback_release(options->callbacks.list[i]);
    }
    if (fit && model) {
        fit->model = fit->event.model = model;
        if (status == TUTTI_OK)
            status = tutti__need_trainer(model);
        if (status == TUTTI_OK)
            status = fit_with(fit, data, options);
        tutti__model_fail(model, status);
    }
    if (fit)
        tutti__fit_end(fit);
    free(fit);
    return model && status == TUTTI_OK ? model->trainer->history : NULL;
}
