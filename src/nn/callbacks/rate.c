/* rate.c: the learning rate by epoch or by step. */
#include <math.h>

#include "nn/callbacks/common.h"

typedef struct rating {
    tutti_learning_rate_fn *fn; /* NULL: `schedule` */
    tutti_schedule schedule;
} rating;

static tutti_status set_rate(tutti_event *event, double rate)
{
    if (!isfinite(rate) || rate < 0)
        return tutti_fail(TUTTI_INVALID, "%g is no learning rate (epoch %d, step %lld)", rate,
                          event->epoch, (long long)event->step);
    if (rate != tutti_get_learning_rate(event->model))
        tutti_set_learning_rate(event->model, rate);
    return tutti_model_check(event->model);
}

static tutti_status rate_train_begin(void *self, tutti_event *event)
{
    rating *r = self;
    (void)event;
    if (r->fn)
        return TUTTI_OK;
    return r->schedule.def ? tutti_schedule_check(&r->schedule)
                           : tutti_fail(TUTTI_INVALID, "there is no function to ask");
}

static tutti_status rate_epoch_begin(void *self, tutti_event *event)
{
    rating *r = self;
    return r->fn ? set_rate(event, r->fn(event->epoch)) : TUTTI_OK;
}

static tutti_status rate_batch_begin(void *self, tutti_event *event)
{
    rating *r = self;
    if (r->fn || event->validating)
        return TUTTI_OK;
    return set_rate(event, tutti_schedule_at(&r->schedule, event->step));
}

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .name = "schedule",
    .train_begin = rate_train_begin,
    .epoch_begin = rate_epoch_begin,
    .batch_begin = rate_batch_begin,
    .destroy = free,
};

static tutti_callback *rate_make(tutti_learning_rate_fn *fn, const tutti_schedule *schedule)
{
    rating *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->fn = fn;
    if (schedule)
        r->schedule = *schedule;
    return tutti_callback_make(&kind, r);
}

tutti_callback *tutti_learning_rate_by_epoch(tutti_learning_rate_fn *fn)
{
    return rate_make(fn, NULL);
}

tutti_callback *tutti_learning_rate_by_step(tutti_schedule schedule)
{
    return rate_make(NULL, &schedule);
}
