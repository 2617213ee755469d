/* callback.c: telling callbacks what happens. */
#include "nn/callback.h"

#include <stdlib.h>
#include <string.h>

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
    if (callback && TUTTI_VEC_PUSH(&fit->callbacks, callback))
        return TUTTI_OK;
    tutti_callback_release(callback);
    return tutti_fail(TUTTI_NO_MEMORY, "no memory for a callback");
}

void tutti__fit_end(tutti_fit *fit)
{
    for (size_t i = 0; i < fit->callbacks.count; i++)
        tutti_callback_release(fit->callbacks.data[i]);
    TUTTI_VEC_FREE(&fit->callbacks);
}

tutti_status tutti__fit_tell(tutti_fit *fit, size_t which)
{
    for (size_t i = 0; i < fit->callbacks.count; i++) {
        tutti_status (*function)(void *, tutti_event *);
        const tutti_callback *callback = fit->callbacks.data[i];
        memcpy(&function, (const char *)callback->kind + which, sizeof function);
        tutti_status status = function ? function(callback->self, &fit->event) : TUTTI_OK;
        if (status != TUTTI_OK)
            return tutti__error_prefix(status, "callback %s",
                                       callback->kind->name ? callback->kind->name : "of yours");
    }
    return TUTTI_OK;
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
