/* reduce_lr.c: lowers the learning rate when training gets no better. */
#include "base/log.h"
#include "nn/callbacks/common.h"

typedef struct reducing {
    tutti_monitor monitor;
    double factor, min_lr;
    int patience, cooldown;
    int waited, cooling;
} reducing;

static tutti_status reduce_lr_train_begin(void *self, tutti_event *event)
{
    reducing *r = self;
    if (!(r->factor > 0 && r->factor < 1))
        return tutti_fail(TUTTI_INVALID, "factor is between 0 and 1, not %g", r->factor);
    return tutti__monitor_check(&r->monitor, event->model);
}

static void reduce_lr_reduce(reducing *r, tutti_event *event)
{
    double old = tutti_get_learning_rate(event->model), rate = old * r->factor;
    rate = rate < r->min_lr ? r->min_lr : rate;
    if (old > r->min_lr) {
        tutti_set_learning_rate(event->model, rate);
        tutti__log(TUTTI_LOG_INFO, "epoch %d: the learning rate falls to %g", event->epoch + 1,
                   rate);
        r->cooling = r->cooldown;
        r->waited = 0;
    }
}

static tutti_status reduce_lr_epoch_end(void *self, tutti_event *event)
{
    reducing *r = self;
    bool better;
    if (!tutti__monitor_see(&r->monitor, event, &better))
        return TUTTI_OK;
    if (r->cooling > 0) {
        r->cooling--;
        r->waited = 0;
    }
    if (better)
        r->waited = 0;
    else if (r->cooling == 0 && ++r->waited >= r->patience)
        reduce_lr_reduce(r, event);
    return TUTTI_OK;
}

static void remember(void *self, tutti_logs *memory)
{
    const reducing *r = self;
    tutti__monitor_remember(&r->monitor, memory);
    tutti_logs_set(memory, "waited", r->waited);
    tutti_logs_set(memory, "cooling", r->cooling);
}

static tutti_status recall(void *self, tutti_event *event, const tutti_logs *memory)
{
    reducing *r = self;
    (void)event;
    tutti__monitor_recall(&r->monitor, memory);
    r->waited = (int)tutti_logs_get(memory, "waited");
    r->cooling = (int)tutti_logs_get(memory, "cooling");
    return TUTTI_OK;
}

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .name = "reduce_lr_on_plateau",
    .train_begin = reduce_lr_train_begin,
    .epoch_end = reduce_lr_epoch_end,
    .destroy = free,
    .remember = remember,
    .recall = recall,
};

tutti_callback *tutti_reduce_lr_on_plateau_with(const tutti_reduce_lr_on_plateau_options *options)
{
    reducing *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    double min_delta = options->min_delta != 0 ? options->min_delta : 1e-4;
    tutti__monitor_begin(&r->monitor, options->monitor, options->mode, min_delta);
    r->factor = options->factor != 0 ? options->factor : 0.1;
    r->patience = options->patience > 0 ? options->patience : 10;
    r->cooldown = options->cooldown;
    r->min_lr = options->min_lr;
    return tutti_callback_make(&kind, r);
}
