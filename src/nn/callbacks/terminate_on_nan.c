/* terminate_on_nan.c: ends training when the loss is no number any more. */
#include <math.h>

#include "base/log.h"
#include "nn/callbacks/common.h"

static tutti_status terminate_on_nan_batch_end(void *self, tutti_event *event)
{
    (void)self;
    if (event->validating || isfinite(tutti_logs_get(tutti_event_logs(event), "loss")))
        return TUTTI_OK;
    tutti__log_job(TUTTI_LOG_WARNING, "step %lld: the loss is not finite; training ends",
                   (long long)event->step);
    tutti__history_diverge(event->model->trainer->history);
    event->model->trainer->stop = true; /* on all processes: the loss is that of all */
    return TUTTI_OK;
}

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .name = "terminate_on_nan",
    .batch_end = terminate_on_nan_batch_end,
};

tutti_callback *tutti_terminate_on_nan(void)
{
    return tutti_callback_make(&kind, NULL);
}
