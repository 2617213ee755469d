/* early_stopping.c: ends training that gets no better. */
#include <stdio.h>

#include "base/log.h"
#include "nn/callbacks/common.h"

typedef struct stopping {
    tutti_monitor monitor;
    int patience, start_from;
    bool restore_best, stopped;
    int waited, best_epoch;
    tutti_kept_weights best;
} stopping;

static tutti_status train_begin(void *self, tutti_event *event)
{
    stopping *s = self;
    return tutti__monitor_check(&s->monitor, event->model);
}

static tutti_status epoch_end(void *self, tutti_event *event)
{
    stopping *s = self;
    bool better;
    if (event->epoch < s->start_from || !tutti__monitor_see(&s->monitor, event, &better))
        return TUTTI_OK;
    if (better) {
        s->waited = 0;
        s->best_epoch = event->epoch;
        return s->restore_best ? tutti__weights_keep(event->model, &s->best) : TUTTI_OK;
    }
    if (++s->waited >= s->patience) {
        s->stopped = true;
        tutti_stop_training(event->model);
    }
    return TUTTI_OK;
}

static tutti_status train_end(void *self, tutti_event *event)
{
    stopping *s = self;
    if (s->stopped)
        tutti__log(TUTTI_LOG_INFO, "stopped early: %s was best in epoch %d (%g)", s->monitor.name,
                   s->best_epoch + 1, s->monitor.best);
    return s->restore_best ? tutti__weights_bring_back(event->model, &s->best) : TUTTI_OK;
}

static void destroy(void *self)
{
    stopping *s = self;
    tutti__weights_drop(&s->best);
    free(s);
}

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .name = "early_stopping",
    .train_begin = train_begin,
    .train_end = train_end,
    .epoch_end = epoch_end,
    .destroy = destroy,
};

tutti_callback *tutti_early_stopping_with(const tutti_early_stopping_options *options)
{
    stopping *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    tutti__monitor_begin(&s->monitor, options->monitor, options->mode, options->min_delta);
    s->patience = options->patience;
    s->start_from = options->start_from;
    s->restore_best = options->restore_best;
    return tutti_callback_make(&kind, s);
}
