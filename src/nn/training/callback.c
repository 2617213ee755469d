/* callback.c: telling callbacks what happens. */
#include "nn/training/callback.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "nn/model/model_strategy.h"

tutti_callback *tutti_callback_make(const tutti_callback_kind *kind, void *self)
{
    tutti_callback *callback = kind ? calloc(1, sizeof *callback) : NULL;
    if (!callback) {
        if (kind && kind->destroy)
            kind->destroy(self);
        return NULL;
    }
    callback->kind = kind;
    callback->self = self;
    return callback;
}

void tutti_callback_release(tutti_callback *callback)
{
    if (!callback)
        return;
    if (callback->kind->destroy)
        callback->kind->destroy(callback->self);
    free(callback);
}

tutti_status tutti__fit_add(tutti_fit *fit, tutti_callback *callback)
{
    if (!callback)
        return tutti_fail(TUTTI_INVALID,
                          "a callback is NULL: what made it was given no path, folder "
                          "or function, or there was no memory");
    if (TUTTI_VEC_PUSH(&fit->callbacks, callback))
        return TUTTI_OK;
    tutti_callback_release(callback);
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a callback");
}

void tutti__fit_end(tutti_fit *fit)
{
    for (size_t i = 0; i < fit->callbacks.count; i++)
        tutti_callback_release(fit->callbacks.data[i]);
    TUTTI_VEC_FREE(&fit->callbacks);
    free(fit->forecast);
    fit->forecast = NULL;
}

/* Whether a callback is told on this process. */
static bool is_told(const tutti_fit *fit, const tutti_callback *callback, size_t which)
{
    bool halfway = fit->model && fit->model->trainer && fit->model->trainer->gathered > 0 &&
                   tutti__strategy_rewrites(tutti__model_strategy(fit->model));
    if (halfway && tutti__callback_saves(callback) && which == TUTTI_AT_EVENT(batch_end))
        return false; /* the gradients gathered so far are each replica's own */
    if (!fit->model || tutti__model_speaks(fit->model))
        return true;
    if (tutti__callback_saves(callback))
        return which == TUTTI_AT_EVENT(train_begin);
    return callback->kind->struct_size <= offsetof(tutti_callback_kind, writes) ||
           !callback->kind->writes;
}

/* Those that save, or the others. */
static tutti_status tell_some(tutti_fit *fit, size_t which, bool savers)
{
    for (size_t i = 0; i < fit->callbacks.count; i++) {
        tutti_status (*function)(void *, tutti_event *);
        const tutti_callback *callback = fit->callbacks.data[i];
        memcpy(&function, (const char *)callback->kind + which, sizeof function);
        if (!function || tutti__callback_saves(callback) != savers ||
            !is_told(fit, callback, which))
            continue;
        tutti__error_forget();
        tutti_status status = tutti__error_say(function(callback->self, &fit->event), "it failed");
        if (status != TUTTI_OK)
            return tutti__error_prefix(status, "callback %s",
                                       callback->kind->name ? callback->kind->name : "of yours");
    }
    return TUTTI_OK;
}

/* Whether one that saves is about to: after this batch, or at the end of an epoch or the training.
 */
static bool saves_now(const tutti_fit *fit, bool after_batch)
{
    for (size_t i = 0; i < fit->callbacks.count; i++)
        if (after_batch ? tutti__callback_due(fit->callbacks.data[i], &fit->event)
                        : tutti__callback_saves(fit->callbacks.data[i]))
            return true;
    return false;
}

/* Whether the first process will save after this batch what others have a part of: all hear it. */
static tutti_status look_for_save(const tutti_fit *fit, bool *ret)
{
    const tutti_model *model = fit->model;
    int due = 0;
    if (!fit->event.validating && model->trainer->gathered == 0 && model->engine &&
        saves_now(fit, false) &&
        (tutti__engine_apart(model->engine, false) || tutti__engine_gathers(model->engine))) {
        due = tutti__model_speaks(model) && saves_now(fit, true);
        TUTTI_TRY(tutti__model_agree(model, due, &due));
    }
    *ret = due != 0;
    return TUTTI_OK;
}

/* Before the first process may save what every one has a part of. At the end of an epoch also where
 * nobody saves: a training has the same bits with a save and without, also one that goes on from
 * it. What was left out of gradients stays where it is, and is only looked at to be saved. */
static tutti_status callback_join(const tutti_fit *fit, size_t which)
{
    if (!fit->model || !fit->model->trainer)
        return TUTTI_OK;
    bool ends = which == TUTTI_AT_EVENT(epoch_end) || which == TUTTI_AT_EVENT(train_end);
    bool due = ends && saves_now(fit, false);
    if (which == TUTTI_AT_EVENT(batch_end))
        TUTTI_TRY(look_for_save(fit, &due));
    if (ends || due)
        TUTTI_TRY(tutti__model_join(fit->model));
    return due ? tutti__model_gather(fit->model) : TUTTI_OK;
}

tutti_status tutti__fit_tell(tutti_fit *fit, size_t which)
{
    TUTTI_TRY(callback_join(fit, which));
    bool savers_last = which == TUTTI_AT_EVENT(batch_end) || which == TUTTI_AT_EVENT(epoch_end);
    TUTTI_TRY(tell_some(fit, which, !savers_last));
    return tell_some(fit, which, savers_last);
}

const tutti_logs *tutti_event_logs(tutti_event *event)
{
    if (event->logs)
        return event->logs;
    tutti_fit *fit = (tutti_fit *)(void *)event;
    if (fit->logs_read)
        return &fit->logs;
    fit->logs.count = 0;
    if (tutti__model_fail(fit->model, tutti__track_read(fit->model, !event->validating, false,
                                                        &fit->logs)) == TUTTI_OK)
        fit->logs_read = true;
    return &fit->logs;
}
