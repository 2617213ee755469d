/* backup.c: a training that can be cut off at any time and goes on when it is started again. */
#include <stdio.h>

#include "base/world.h"
#include "nn/callbacks/checkpoint.h"
#include "tutti/checkpoint.h"

typedef struct backup {
    char *folder;
    int64_t every_steps;
    bool keep;
    int64_t saved;  /* step of the newest; -1: none */
    int64_t before; /* of the one before; -1: none */
    int64_t passed; /* the last step it was told of, or at which training began */
} backup;

static void remove_step(const backup *b, int64_t step)
{
    char path[4096];
    if (step < 0)
        return;
    snprintf(path, sizeof path, "%s/backup-%lld", b->folder, (long long)step);
    tutti__checkpoint_remove(path);
}

/* Removes every backup but that of one step (-1: every one); others' files stay. */
static void clear(const backup *b, int64_t except)
{
    const tutti_world *world = tutti__world();
    char **names;
    size_t count;
    tutti_error before;
    tutti__error_capture(TUTTI_OK, &before);
    if (world->list_folder(world->self, b->folder, &names, &count) != TUTTI_OK) {
        tutti__error_restore(&before);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        long long step;
        if (sscanf(names[i], "backup-%lld.", &step) == 1 && step != except)
            remove_step(b, step);
    }
    free(names);
}

/* The one before stays until the new one is whole: saving waits for it to be. */
static tutti_status backup_save(backup *b, tutti_event *event)
{
    char path[4096];
    if (b->saved == event->step)
        return TUTTI_OK;
    snprintf(path, sizeof path, "%s/backup-%lld", b->folder, (long long)event->step);
    TUTTI_TRY(tutti_save_checkpoint_async(event->model, path));
    remove_step(b, b->before);
    b->before = b->saved;
    b->saved = event->step;
    return TUTTI_OK;
}

static tutti_status backup_train_begin(void *self, tutti_event *event)
{
    backup *b = self;
    bool found;
    TUTTI_TRY(tutti__resume_from(event->model, b->folder, NULL, &found));
    b->before = -1;
    b->saved = found ? tutti_model_steps(event->model) : -1;
    if (found)
        clear(b, b->saved); /* those that were older when a training was cut off */
    return TUTTI_OK;
}

static bool is_due(void *self, const tutti_event *event)
{
    const backup *b = self;
    return !event->validating && b->every_steps > 0 &&
           event->step / b->every_steps > b->passed / b->every_steps;
}

static tutti_status backup_batch_end(void *self, tutti_event *event)
{
    backup *b = self;
    bool due = is_due(self, event);
    b->passed = event->step;
    return due ? backup_save(b, event) : TUTTI_OK;
}

static tutti_status backup_epoch_begin(void *self, tutti_event *event)
{
    backup *b = self;
    b->passed = tutti_model_steps(event->model);
    return TUTTI_OK;
}

static tutti_status backup_epoch_end(void *self, tutti_event *event)
{
    return backup_save(self, event);
}

static tutti_status backup_train_end(void *self, tutti_event *event)
{
    backup *b = self;
    if (event->interrupted && event->step > 0)
        TUTTI_TRY(backup_save(b, event));
    TUTTI_TRY(tutti_checkpoint_wait(event->model));
    clear(b, event->interrupted || b->keep ? b->saved : -1);
    return TUTTI_OK;
}

static void backup_destroy(void *self)
{
    backup *b = self;
    free(b->folder);
    free(b);
}

static const tutti_callback_kind kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .name = "backup",
    .train_begin = backup_train_begin,
    .train_end = backup_train_end,
    .epoch_begin = backup_epoch_begin,
    .epoch_end = backup_epoch_end,
    .batch_end = backup_batch_end,
    .destroy = backup_destroy,
    .saves = true,
    .due = is_due,
};

tutti_callback *tutti_backup_with(const char *folder, const tutti_backup_options *options)
{
    backup *b = calloc(1, sizeof *b);
    char *copy = folder ? strdup(folder) : NULL;
    if (!b || !copy) {
        free(b);
        free(copy);
        return NULL;
    }
    *b = (backup){.folder = copy,
                  .every_steps = options->every_steps,
                  .keep = options->keep,
                  .saved = -1,
                  .before = -1};
    return tutti_callback_make(&kind, b);
}
