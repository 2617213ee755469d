/* tensorboard.c: event files as Keras lays them out: <folder>/train and <folder>/validation. */
#include <stdio.h>

#include "io/events.h"
#include "nn/callbacks/common.h"
#include "nn/callbacks/profile.h"

#define HISTOGRAM_BINS 30

typedef struct board {
    char *folder;
    tutti_tensorboard_options options;
    tutti_events train, validation; /* no sink: not open */
    tutti_profile profile;
    bool profiled;
} board;

static tutti_status open_events(const board *b, const char *part, tutti_events *ret)
{
    char path[4096];
    if (ret->sink)
        return TUTTI_OK;
    if (snprintf(path, sizeof path, "%s/%s", b->folder, part) >= (int)sizeof path)
        return tutti_fail(TUTTI_TOO_LARGE, "the path '%.80s' is too long", b->folder);
    return tutti__events_create(path, ".v2", ret);
}

/* The weights as a table in Markdown. */
static tutti_status put_summary(board *b, tutti_model *model)
{
    tutti_text text = {0};
    tutti_weight_info info;
    int64_t total = 0;
    int count = tutti_weight_count(model);
    tutti__text_add(&text, "model **%s**\n\n| weight | type | trainable |\n|---|---|---|\n",
                    tutti_model_name(model));
    for (int i = 0; i < count && tutti_weight_at(model, i, &info) == TUTTI_OK; i++) {
        char type[TUTTI_TYPE_TEXT];
        tutti__text_add(&text, "| %s | %s | %s |\n", info.name, tutti_type_text(&info.type, type),
                        info.trainable ? "yes" : "no");
        total += tutti_type_count(&info.type);
    }
    tutti__text_add(&text, "\n%lld parameters\n", (long long)total);
    tutti_status status = text.failed ? tutti_fail(TUTTI_NO_MEMORY, "no memory for a text")
                                      : tutti__events_text(&b->train, 0, "model", text.data);
    tutti__text_free(&text);
    return status;
}

static tutti_status tensorboard_train_begin(void *self, tutti_event *event)
{
    board *b = self;
    TUTTI_TRY(open_events(b, "train", &b->train));
    if (event->model) /* a hand-written loop has none */
        TUTTI_TRY(put_summary(b, event->model));
    tutti__profile_begin(&b->profile);
    return tutti__events_flush(&b->train);
}

/* "loss" of the training goes to train, "val_loss" to validation, both as "epoch_loss". */
static tutti_status put_epoch(board *b, const char *name, double value, const tutti_event *event)
{
    char tag[300];
    bool validation = strncmp(name, "val_", 4) == 0;
    const char *plain = validation ? name + 4 : name;
    tutti_events *events = validation ? &b->validation : &b->train;
    if (validation)
        TUTTI_TRY(open_events(b, "validation", events));
    snprintf(tag, sizeof tag, "epoch_%s", plain);
    TUTTI_TRY(tutti__events_scalar(events, event->epoch, tag, value));
    if (!validation)
        return TUTTI_OK;
    snprintf(tag, sizeof tag, "evaluation_%s_vs_iterations", plain);
    return tutti__events_scalar(events, event->step, tag, value);
}

static tutti_status put_histograms(board *b, const tutti_event *event)
{
    int count = tutti_weight_count(event->model);
    for (int i = 0; i < count; i++) {
        char tag[600];
        tutti_weight_info info;
        tutti_tensor *value;
        TUTTI_TRY(tutti_weight_at(event->model, i, &info));
        TUTTI_TRY(tutti_get_weight(event->model, info.name, &value));
        snprintf(tag, sizeof tag, "%s/histogram", info.name);
        tutti_status status = TUTTI_OK;
        if (tutti_dtype_is_float(info.type.dtype))
            status = tutti__events_values(&b->train, event->epoch, tag, value, HISTOGRAM_BINS);
        tutti_tensor_release(value);
        TUTTI_TRY(status);
    }
    return TUTTI_OK;
}

static tutti_status tensorboard_batch_end(void *self, tutti_event *event)
{
    board *b = self;
    if (event->validating)
        return TUTTI_OK;
    if (b->options.profile && !b->profiled)
        tutti__profile_step(&b->profile, event);
    if (b->options.every_steps <= 0 || event->step % b->options.every_steps != 0)
        return TUTTI_OK;
    const tutti_logs *logs = tutti_event_logs(event);
    for (int i = 0; i < logs->count; i++) {
        char tag[300];
        snprintf(tag, sizeof tag, "batch_%s", logs->items[i].name);
        TUTTI_TRY(tutti__events_scalar(&b->train, event->step, tag, logs->items[i].value));
    }
    return tutti__events_scalar(&b->train, event->step, "batch_lr",
                                tutti_get_learning_rate(event->model));
}

static tutti_status tensorboard_epoch_end(void *self, tutti_event *event)
{
    board *b = self;
    for (int i = 0; i < event->logs->count; i++)
        TUTTI_TRY(put_epoch(b, event->logs->items[i].name, event->logs->items[i].value, event));
    if (b->options.histograms > 0 && event->epoch % b->options.histograms == 0)
        TUTTI_TRY(put_histograms(b, event));
    if (b->options.profile && !b->profiled) {
        b->profiled = true;
        TUTTI_TRY(tutti__profile_write(&b->profile, b->folder));
    }
    TUTTI_TRY(tutti__events_flush(&b->train));
    return b->validation.sink ? tutti__events_flush(&b->validation) : TUTTI_OK;
}

static tutti_status tensorboard_train_end(void *self, tutti_event *event)
{
    board *b = self;
    (void)event;
    tutti_status train = tutti__events_close(&b->train);
    tutti_status validation = tutti__events_close(&b->validation);
    b->train = b->validation = (tutti_events){0};
    return train != TUTTI_OK ? train : validation;
}

static void tensorboard_destroy(void *self)
{
    board *b = self;
    tutti__events_close(&b->train);
    tutti__events_close(&b->validation);
    tutti__profile_free(&b->profile);
    free(b->folder);
    free(b);
}

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .writes = true,
    .name = "tensorboard",
    .train_begin = tensorboard_train_begin,
    .train_end = tensorboard_train_end,
    .epoch_end = tensorboard_epoch_end,
    .batch_end = tensorboard_batch_end,
    .destroy = tensorboard_destroy,
};

tutti_callback *tutti_tensorboard_with(const char *folder, const tutti_tensorboard_options *options)
{
    board *b = calloc(1, sizeof *b);
    char *copy = folder ? strdup(folder) : NULL;
    if (!b || !copy) {
        free(b);
        free(copy);
        return NULL;
    }
    b->folder = copy;
    b->options = *options;
    return tutti_callback_make(&kind, b);
}

bool tutti__is_board_in(const tutti_callback *callback, const char *folder)
{
    return callback->kind == &kind && strcmp(((const board *)callback->self)->folder, folder) == 0;
}
