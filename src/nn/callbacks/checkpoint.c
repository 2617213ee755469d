/* checkpoint_file.c: saves the training every epoch or every so many steps. */
#define _GNU_SOURCE
#include "nn/callbacks/checkpoint.h"

#include <stdio.h>

#include "base/world.h"
#include "io/safetensors_files.h"
#include "nn/model/model_strategy.h"
#include "state/checkpoint.h"
#include "tutti/checkpoint.h"

typedef TUTTI_VEC(char *) paths;

typedef struct saving {
    char *pattern;
    tutti_checkpoint_options options;
    tutti_monitor monitor;
    bool looked;        /* for files of the run that this one goes on from */
    int64_t saved_step; /* of the newest file; -1: none */
    int64_t passed;     /* the last step it was told of, or at which training began */
    paths saved;        /* oldest first */
} saving;

/* {epoch} and {step} replaced. */
static tutti_status checkpoint_expand(const saving *s, const tutti_event *event, char *ret,
                                      size_t size)
{
    tutti_text text = {0};
    for (const char *at = s->pattern; *at;) {
        if (strncmp(at, "{epoch}", 7) == 0) {
            tutti__text_add(&text, "%d", event->epoch + 1);
            at += 7;
        } else if (strncmp(at, "{step}", 6) == 0) {
            tutti__text_add(&text, "%lld", (long long)event->step);
            at += 6;
        } else {
            tutti__text_bytes(&text, at++, 1);
        }
    }
    tutti_status status = TUTTI_OK;
    if (text.failed)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for a checkpoint's path");
    else if (text.size >= size)
        status = tutti_fail(TUTTI_TOO_LARGE, "the path '%.80s' is too long", s->pattern);
    else
        snprintf(ret, size, "%s", text.data ? text.data : "");
    tutti__text_free(&text);
    return status;
}

void tutti__checkpoint_remove(const char *path)
{
    char full[4096];
    if (tutti__checkpoint_path(path, full, sizeof full) == TUTTI_OK)
        tutti__safetensors_remove(full);
}

/* Removes all but the newest `keep`. */
static void forget(saving *s, int keep)
{
    while (s->options.keep > 0 && s->saved.count > (size_t)keep) {
        tutti__checkpoint_remove(s->saved.data[0]);
        free(s->saved.data[0]);
        memmove(s->saved.data, s->saved.data + 1, --s->saved.count * sizeof *s->saved.data);
    }
}

/* Notes a path as the newest; removes what is too old. */
static tutti_status checkpoint_note(saving *s, const char *path)
{
    for (size_t i = 0; i < s->saved.count; i++)
        if (strcmp(s->saved.data[i], path) == 0) {
            char *same = s->saved.data[i];
            memmove(&s->saved.data[i], &s->saved.data[i + 1],
                    (s->saved.count - i - 1) * sizeof *s->saved.data);
            s->saved.data[s->saved.count - 1] = same;
            return TUTTI_OK;
        }
    char *copy = strdup(path);
    if (!copy || !TUTTI_VEC_PUSH(&s->saved, copy)) {
        free(copy);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a checkpoint's path");
    }
    /* The newest is still being written: the one before it stays until it is whole. */
    forget(s, s->options.keep > 1 ? s->options.keep : 2);
    return TUTTI_OK;
}

/* ---- files of the run before ---- */

typedef struct older {
    long long epoch, step;
    char *path;
} older;

static int compare_older(const void *left, const void *right)
{
    const older *a = left, *b = right;
    if (a->step != b->step)
        return a->step < b->step ? -1 : 1;
    return (a->epoch > b->epoch) - (a->epoch < b->epoch);
}

/* Reads a file's name by the pattern; its ending is left out of *ret_size where the pattern has
 * none. */
static bool read_name(const char *pattern, const char *name, older *ret, int *ret_size)
{
    const char *at = name;
    *ret = (older){0};
    while (*pattern) {
        bool epoch = strncmp(pattern, "{epoch}", 7) == 0;
        if (epoch || strncmp(pattern, "{step}", 6) == 0) {
            char *end;
            if (*at < '0' || *at > '9')
                return false;
            *(epoch ? &ret->epoch : &ret->step) = strtoll(at, &end, 10);
            at = end;
            pattern += epoch ? 7 : 6;
        } else if (*pattern++ != *at++) {
            return false;
        }
    }
    *ret_size = (int)(at - name);
    return *at == 0 || strcmp(at, ".safetensors") == 0 ||
           strcmp(at, ".safetensors.index.json") == 0;
}

/* A training that goes on keeps as many files as one that was never cut off. */
static tutti_status adopt_older(saving *s, const tutti_event *event)
{
    const tutti_world *world = tutti__world();
    const char *slash = strrchr(s->pattern, '/'), *base = slash ? slash + 1 : s->pattern;
    char folder[4000], **names;
    size_t count;
    TUTTI_VEC(older) found = {0};
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - s->pattern) : 1,
             slash ? s->pattern : ".");
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    if (strchr(folder, '{') || !strchr(base, '{'))
        return TUTTI_OK;
    if (world->list_folder(world->self, folder, &names, &count) != TUTTI_OK) {
        tutti__error_restore(&before); /* it is not there yet */
        return TUTTI_OK;
    }
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        older item;
        int size;
        if (!read_name(base, names[i], &item, &size) || item.step > event->step ||
            item.epoch > event->epoch + 1)
            continue;
        ok = asprintf(&item.path, "%.*s%.*s", (int)(base - s->pattern), s->pattern, size,
                      names[i]) >= 0 &&
             TUTTI_VEC_PUSH(&found, item);
    }
    free(names);
    if (found.count > 0)
        qsort(found.data, found.count, sizeof *found.data, compare_older);
    for (size_t i = 0; i < found.count; i++)
        if (!TUTTI_VEC_PUSH(&s->saved, found.data[i].path)) {
            free(found.data[i].path);
            ok = false;
        }
    TUTTI_VEC_FREE(&found);
    return ok ? TUTTI_OK : tutti_fail(TUTTI_NO_MEMORY, "no memory for checkpoints' paths");
}

static tutti_status checkpoint_save(saving *s, tutti_event *event)
{
    char path[4000];
    if (s->saved_step == event->step)
        return TUTTI_OK;
    if (!s->looked && s->options.keep > 0 && event->model->trainer->restored)
        TUTTI_TRY(adopt_older(s, event));
    s->looked = true;
    TUTTI_TRY(checkpoint_expand(s, event, path, sizeof path));
    TUTTI_TRY(s->options.weights_only ? tutti_save_weights(event->model, path)
                                      : tutti_save_checkpoint_async(event->model, path));
    s->saved_step = event->step;
    return checkpoint_note(s, path);
}

static tutti_status checkpoint_train_begin(void *self, tutti_event *event)
{
    saving *s = self;
    char path[4000];
    if (s->options.best_only)
        TUTTI_TRY(tutti__monitor_check(&s->monitor, event->model));
    /* That nothing can be written there is found out before the training. */
    TUTTI_TRY(checkpoint_expand(s, event, path, sizeof path));
    return tutti__model_speaks(event->model) ? tutti__checkpoint_try(path) : TUTTI_OK;
}

static bool is_due(void *self, const tutti_event *event)
{
    const saving *s = self;
    int64_t every = s->options.every_steps;
    return !event->validating && !s->options.best_only && every > 0 &&
           event->step / every > s->passed / every;
}

static tutti_status checkpoint_batch_end(void *self, tutti_event *event)
{
    saving *s = self;
    bool due = is_due(self, event);
    s->passed = event->step;
    return due ? checkpoint_save(s, event) : TUTTI_OK;
}

/* Steps of which none was told, since gradients were only gathered, may have been due. */
static tutti_status checkpoint_epoch_begin(void *self, tutti_event *event)
{
    saving *s = self;
    s->passed = tutti_model_steps(event->model);
    return TUTTI_OK;
}

static tutti_status checkpoint_epoch_end(void *self, tutti_event *event)
{
    saving *s = self;
    bool better = true;
    if (s->options.best_only)
        return tutti__monitor_see(&s->monitor, event, &better) && better ? checkpoint_save(s, event)
                                                                         : TUTTI_OK;
    return s->options.every_steps > 0 ? TUTTI_OK : checkpoint_save(s, event);
}

static tutti_status checkpoint_train_end(void *self, tutti_event *event)
{
    saving *s = self;
    if (event->interrupted && !s->options.best_only && event->step > 0)
        TUTTI_TRY(checkpoint_save(s, event));
    TUTTI_TRY(tutti_checkpoint_wait(event->model));
    forget(s, s->options.keep);
    return TUTTI_OK;
}

static void checkpoint_destroy(void *self)
{
    saving *s = self;
    for (size_t i = 0; i < s->saved.count; i++)
        free(s->saved.data[i]);
    TUTTI_VEC_FREE(&s->saved);
    free(s->pattern);
    free(s);
}

static void remember(void *self, tutti_logs *memory)
{
    const saving *s = self;
    if (s->options.best_only)
        tutti__monitor_remember(&s->monitor, memory);
}

static tutti_status recall(void *self, tutti_event *event, const tutti_logs *memory)
{
    saving *s = self;
    (void)event;
    if (s->options.best_only)
        tutti__monitor_recall(&s->monitor, memory);
    return TUTTI_OK;
}

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .name = "checkpoint",
    .train_begin = checkpoint_train_begin,
    .train_end = checkpoint_train_end,
    .epoch_begin = checkpoint_epoch_begin,
    .epoch_end = checkpoint_epoch_end,
    .batch_end = checkpoint_batch_end,
    .destroy = checkpoint_destroy,
    .saves = true,
    .remember = remember,
    .recall = recall,
    .due = is_due,
};

tutti_callback *tutti_checkpoint_with(const char *path, const tutti_checkpoint_options *options)
{
    saving *s = calloc(1, sizeof *s);
    char *copy = path ? strdup(path) : NULL;
    if (!s || !copy) {
        free(s);
        free(copy);
        return NULL;
    }
    s->pattern = copy;
    s->options = *options;
    s->saved_step = -1;
    tutti__monitor_begin(&s->monitor, options->monitor, options->mode, 0);
    return tutti_callback_make(&kind, s);
}

bool tutti__checkpoint_folder(const tutti_callback *callback, size_t size, char *ret_folder)
{
    const saving *s = callback->self;
    if (callback->kind != &kind || s->options.weights_only)
        return false;
    const char *slash = strrchr(s->pattern, '/');
    size_t length = slash ? (size_t)(slash - s->pattern) : 1;
    if (length >= size || memchr(s->pattern, '{', length))
        return false;
    snprintf(ret_folder, size, "%.*s", (int)length, slash ? s->pattern : ".");
    return true;
}
