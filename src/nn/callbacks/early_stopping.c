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

static tutti_status early_stopping_train_begin(void *self, tutti_event *event)
{
    stopping *s = self;
    return tutti__monitor_check(&s->monitor, event->model);
}

/* ---- the best weights, which stand in checkpoints as "training/best/<monitor>/<weight>" ---- */

static void best_name(const stopping *s, const tutti_weight_info *info, char *ret, size_t size)
{
    snprintf(ret, size, "training/best/%s/%s", s->monitor.name, info->name);
}

static tutti_status keep_best(stopping *s, tutti_model *model)
{
    char name[1400];
    tutti_weight_info info;
    TUTTI_TRY(tutti__weights_keep(model, &s->best));
    for (size_t i = 0; i < s->best.count; i++) {
        TUTTI_TRY(tutti_weight_at(model, (int)i, &info));
        best_name(s, &info, name, sizeof name);
        TUTTI_TRY(tutti__state_expect(tutti__engine_state(model->engine), name, s->best.data[i]));
    }
    return TUTTI_OK;
}

static tutti_status find_best(stopping *s, tutti_model *model)
{
    char name[1400];
    tutti_weight_info info;
    int count = tutti_weight_count(model);
    tutti__weights_drop(&s->best);
    for (int i = 0; i < count; i++) {
        TUTTI_TRY(tutti_weight_at(model, i, &info));
        best_name(s, &info, name, sizeof name);
        tutti_tensor *value = tutti__state_expected(tutti__engine_state(model->engine), name);
        if (!value || !TUTTI_VEC_PUSH(&s->best, tutti_tensor_retain(value))) {
            tutti__weights_drop(&s->best); /* of a training that did not keep them */
            return value ? tutti_fail(TUTTI_NO_MEMORY, "no memory for the best weights") : TUTTI_OK;
        }
    }
    return TUTTI_OK;
}

static void forget_best(const stopping *s, tutti_model *model)
{
    char name[1400];
    tutti_weight_info info;
    for (size_t i = 0; i < s->best.count; i++)
        if (tutti_weight_at(model, (int)i, &info) == TUTTI_OK) {
            best_name(s, &info, name, sizeof name);
            tutti__state_forget(tutti__engine_state(model->engine), name);
        }
}

/* ---- events ---- */

static void early_stopping_stop(stopping *s, tutti_model *model)
{
    s->stopped = true;
    tutti_stop_training(model);
}

static tutti_status early_stopping_epoch_end(void *self, tutti_event *event)
{
    stopping *s = self;
    bool better;
    if (event->epoch < s->start_from || !tutti__monitor_see(&s->monitor, event, &better))
        return TUTTI_OK;
    if (better) {
        s->waited = 0;
        s->best_epoch = event->epoch;
        return s->restore_best ? keep_best(s, event->model) : TUTTI_OK;
    }
    if (++s->waited >= s->patience)
        early_stopping_stop(s, event->model);
    return TUTTI_OK;
}

static tutti_status early_stopping_train_end(void *self, tutti_event *event)
{
    stopping *s = self;
    if (s->stopped)
        tutti__log(TUTTI_LOG_INFO, "stopped early: %s was best in epoch %d (%g)", s->monitor.name,
                   s->best_epoch + 1, s->monitor.best);
    if (!s->restore_best)
        return TUTTI_OK;
    if (!event->interrupted)
        forget_best(s, event->model);
    return tutti__weights_bring_back(event->model, &s->best);
}

static void remember(void *self, tutti_logs *memory)
{
    const stopping *s = self;
    tutti__monitor_remember(&s->monitor, memory);
    tutti_logs_set(memory, "waited", s->waited);
    tutti_logs_set(memory, "best_epoch", s->best_epoch);
}

/* A training that had come to its end, by the patience of today, goes no further. */
static tutti_status recall(void *self, tutti_event *event, const tutti_logs *memory)
{
    stopping *s = self;
    tutti__monitor_recall(&s->monitor, memory);
    s->waited = (int)tutti_logs_get(memory, "waited");
    s->best_epoch = (int)tutti_logs_get(memory, "best_epoch");
    if (s->waited > 0 && s->waited >= s->patience)
        early_stopping_stop(s, event->model);
    return s->restore_best ? find_best(s, event->model) : TUTTI_OK;
}

static void early_stopping_destroy(void *self)
{
    stopping *s = self;
    tutti__weights_drop(&s->best);
    free(s);
}

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .name = "early_stopping",
    .train_begin = early_stopping_train_begin,
    .train_end = early_stopping_train_end,
    .epoch_end = early_stopping_epoch_end,
    .destroy = early_stopping_destroy,
    .remember = remember,
    .recall = recall,
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
