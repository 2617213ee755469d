/* save_resume.c: what --save and --resume ask for. */
#define _GNU_SOURCE
#include <stdio.h>

#include "base/job.h"
#include "base/log.h"
#include "base/params.h"
#include "base/world.h"
#include "nn/callbacks/checkpoint.h"
#include "nn/model/model_strategy.h"
#include "state/checkpoint.h"
#include "tutti/checkpoint.h"

typedef struct save_resume {
    char *path;       /* of --save, or NULL */
    char *checkpoint; /* "<path>.checkpoint", or NULL */
    char *folder;     /* with checkpoints to go on from, or NULL */
    bool resume;
    tutti_pace pace;
    int64_t asked; /* the step after which it was asked whether it will save, */
    bool due;      /* and what it said */
} save_resume;

static tutti_param often = TUTTI_PARAM(
    "SAVE_SECONDS", "300", "seconds of training after which --save saves where it stands");

bool tutti__pace_due(tutti_pace *pace, int64_t step)
{
    int64_t now = tutti__now_ns();
    bool due = pace->last == 0 ||
               (pace->every > 0 && step / pace->every > pace->step / pace->every) ||
               now - pace->last >= 1000000000 * tutti__param_int(&often);
    pace->last = due ? now : pace->last;
    pace->step = step;
    return due;
}

static tutti_status save_resume_train_begin(void *self, tutti_event *event)
{
    save_resume *k = self;
    bool found = false;
    if (!k->resume || event->model->trainer->resumed)
        return TUTTI_OK;
    if (!k->folder && !k->checkpoint)
        return tutti_fail(TUTTI_INVALID,
                          "--resume: nothing says where the checkpoints are; add --save FILE, or "
                          "give tutti_checkpoint or tutti_backup to tutti_fit");
    TUTTI_TRY(tutti__resume_from(event->model, k->folder, k->checkpoint, &found));
    if (found) {
        k->pace.last = tutti__now_ns();
        k->pace.step = tutti_model_steps(event->model);
    } else
        tutti__log(TUTTI_LOG_INFO, "--resume: there is no checkpoint%s%s yet, training begins anew",
                   k->folder ? " in " : "", k->folder ? k->folder : "");
    return TUTTI_OK;
}

/* That the file can be written is found out before the training, not after it. */
static tutti_status try_place(void *self, tutti_event *event)
{
    const save_resume *k = self;
    if (!tutti__model_speaks(event->model))
        return TUTTI_OK;
    TUTTI_TRY(tutti__checkpoint_try(k->checkpoint));
    return tutti__model_try_place(k->path);
}

tutti_status tutti__keep_going(tutti_job *job, tutti_status status)
{
    char note[1024];
    if (status == TUTTI_OK || status == TUTTI_NO_MEMORY)
        return status;
    tutti__log(TUTTI_LOG_WARNING, "%s; the training goes on, --resume would go on from before",
               tutti_error_message());
    snprintf(note, sizeof note,
             "where the training stood could not be saved: %.800s; --resume goes on from what was "
             "saved before",
             tutti_error_message());
    tutti__job_note(job, note);
    return TUTTI_OK;
}

/* Where others save checkpoints, this one does so when the training is interrupted. By the clock:
 * it does not change its mind after a step. */
static bool is_due(void *self, const tutti_event *event)
{
    save_resume *k = self;
    if (event->validating || k->folder || !k->checkpoint)
        return false;
    if (k->asked != event->step)
        k->due = tutti__pace_due(&k->pace, event->step);
    k->asked = event->step;
    return k->due;
}

static tutti_status save_resume_batch_end(void *self, tutti_event *event)
{
    const save_resume *k = self;
    if (!is_due(self, event))
        return TUTTI_OK;
    return tutti__keep_going(event->model->job,
                             tutti_save_checkpoint_async(event->model, k->checkpoint));
}

static tutti_status save_resume_epoch_end(void *self, tutti_event *event)
{
    const save_resume *k = self;
    if (!k->checkpoint || k->folder)
        return TUTTI_OK;
    return tutti__keep_going(event->model->job,
                             tutti_save_checkpoint_async(event->model, k->checkpoint));
}

/* The training as it stands, before others change the weights at its end. */
static tutti_status save_training(void *self, tutti_event *event)
{
    const save_resume *k = self;
    if (k->checkpoint && event->interrupted)
        return tutti_save_checkpoint(event->model, k->checkpoint);
    if (k->checkpoint && k->folder) /* of an earlier run; the folder's are farther */
        tutti__checkpoint_remove(k->checkpoint);
    return k->folder ? tutti_checkpoint_wait(event->model)
                     : tutti__keep_going(event->model->job, tutti_checkpoint_wait(event->model));
}

/* The model, after them. */
static tutti_status save_model(void *self, tutti_event *event)
{
    const save_resume *k = self;
    return tutti_save_model(event->model, k->path);
}

static void save_resume_destroy(void *self)
{
    save_resume *k = self;
    free(k->path);
    free(k->checkpoint);
    free(k->folder);
    free(k);
}

static const tutti_callback_kind training_kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .name = "resume",
    .train_begin = save_resume_train_begin,
    .train_end = save_training,
    .epoch_end = save_resume_epoch_end,
    .batch_end = save_resume_batch_end,
    .destroy = save_resume_destroy,
    .saves = true,
    .due = is_due,
};

static const tutti_callback_kind model_kind = {
    .struct_size = sizeof(tutti_callback_kind),
    .name = "save",
    .train_begin = try_place,
    .train_end = save_model,
    .destroy = save_resume_destroy,
};

static tutti_callback *save_resume_make(const tutti_callback_kind *kind, const char *path,
                                        bool resume, const char *folder)
{
    save_resume *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->resume = resume;
    k->path = path ? strdup(path) : NULL;
    k->folder = folder ? strdup(folder) : NULL;
    if (path && asprintf(&k->checkpoint, "%s.checkpoint", path) < 0)
        k->checkpoint = NULL;
    if ((path && (!k->path || !k->checkpoint)) || (folder && !k->folder)) {
        save_resume_destroy(k);
        return NULL;
    }
    return tutti_callback_make(kind, k);
}

tutti_callback *tutti__training_save_resume(const char *path, bool resume, const char *folder,
                                            int64_t every)
{
    tutti_callback *made = save_resume_make(&training_kind, path, resume, folder);
    if (made)
        ((save_resume *)made->self)->pace.every = every;
    return made;
}

tutti_callback *tutti__model_save_resume(const char *path)
{
    return save_resume_make(&model_kind, path, false, NULL);
}
