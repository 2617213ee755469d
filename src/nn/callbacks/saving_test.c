/* saving_test.c: checkpoints, backups, --save and --resume, through whole trainings. */
#define _GNU_SOURCE
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/job.h"
#include "nn/callbacks/training.h"

static bool exists(const training *t, const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", t->folder, name);
    return access(path, F_OK) == 0;
}

static char *in_folder(const training *t, const char *name, char path[400])
{
    snprintf(path, 400, "%s/%s", t->folder, name);
    return path;
}

TUTTI_TEST(saving_checkpoints_every_epoch_keeps_the_newest)
{
    training t = training_begin(NULL);
    char path[400];
    in_folder(&t, "ckpt/{epoch}", path);
    CHECK(tutti_fit(t.model, t.data, .epochs = 5, .quiet = true,
                    .callbacks = TUTTI_LIST(tutti_checkpoint(path, .keep = 2))));
    CHECK(!exists(&t, "ckpt/1.safetensors"));
    CHECK(!exists(&t, "ckpt/3.safetensors"));
    CHECK(exists(&t, "ckpt/4.safetensors"));
    CHECK(exists(&t, "ckpt/5.safetensors"));
    double trained = training_kernel(&t);
    char latest[4096];
    CHECK_OK(tutti_latest_checkpoint(in_folder(&t, "ckpt", path), sizeof latest, latest));
    CHECK_CONTAINS(latest, "ckpt/5.safetensors");
    training other = training_begin(NULL);
    CHECK_OK(tutti_restore_checkpoint(other.model, latest));
    CHECK_OK(tutti_build(other.model, TUTTI_F32, 1));
    CHECK_NEAR(training_kernel(&other), trained, 0);
    training_end(other);
    training_end(t);
}

TUTTI_TEST(saving_goes_on_with_the_files_of_the_run_before)
{
    training t = training_begin(NULL);
    char path[400], from[400];
    in_folder(&t, "c-{step}", path);
    CHECK(tutti_fit(t.model, t.data, .epochs = 2, .quiet = true,
                    .callbacks = TUTTI_LIST(tutti_checkpoint(path, .every_steps = 2, .keep = 3))));
    CHECK(exists(&t, "c-4.safetensors") && exists(&t, "c-8.safetensors"));
    training other = training_begin(NULL);
    CHECK_OK(tutti_restore_checkpoint(other.model, in_folder(&t, "c-8", from)));
    CHECK(tutti_fit(other.model, other.data, .epochs = 3, .quiet = true,
                    .callbacks = TUTTI_LIST(tutti_checkpoint(path, .every_steps = 2, .keep = 1))));
    CHECK(exists(&t, "c-12.safetensors"));
    CHECK(!exists(&t, "c-4.safetensors") && !exists(&t, "c-6.safetensors"));
    CHECK(!exists(&t, "c-8.safetensors") && !exists(&t, "c-10.safetensors"));
    training_end(other);
    training_end(t);
}

TUTTI_TEST(saving_checkpoints_every_so_many_steps)
{
    training t = training_begin(NULL);
    char path[400];
    in_folder(&t, "c-{epoch}-{step}", path);
    CHECK(tutti_fit(t.model, t.data, .epochs = 2, .quiet = true,
                    .callbacks = TUTTI_LIST(tutti_checkpoint(path, .every_steps = 3))));
    CHECK(exists(&t, "c-1-3.safetensors"));
    CHECK(exists(&t, "c-2-6.safetensors"));
    CHECK(!exists(&t, "c-2-8.safetensors"));
    training_end(t);
}

TUTTI_TEST(saving_only_the_best_weights)
{
    training t = training_begin(NULL);
    char path[400];
    in_folder(&t, "best", path);
    CHECK_OK(tutti_build(t.model, TUTTI_F32, 1));
    tutti_callback *c = tutti_checkpoint(path, .best_only = true, .weights_only = true);
    static const double losses[] = {1, 0.5, 0.7};
    for (int i = 0; i < 3; i++) {
        tutti_tensor *value;
        tutti_logs logs = {0};
        tutti_logs_set(&logs, "val_loss", losses[i]);
        tutti_event event = {.model = t.model, .epoch = i, .step = i + 1, .logs = &logs};
        CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){1, 1}, (float[]){(float)i}, &value));
        CHECK_OK(tutti_set_weight(t.model, "d/kernel", value));
        tutti_tensor_release(value);
        CHECK_OK(c->kind->epoch_end(c->self, &event));
    }
    tutti_callback_release(c);
    CHECK_NEAR(training_kernel(&t), 2, 0);
    CHECK_OK(tutti_load_weights(t.model, path));
    CHECK_NEAR(training_kernel(&t), 1, 0);
    training_end(t);
}

static tutti_status cut_off(void *self, tutti_event *event)
{
    (void)self;
    return !event->validating && event->step == 7 ? tutti_fail(TUTTI_IO, "the power failed")
                                                  : TUTTI_OK;
}
static const tutti_callback_kind failing = {
    .struct_size = sizeof failing, .name = "failing", .batch_end = cut_off};

static tutti_status cut_off_at_end(void *self, tutti_event *event)
{
    (void)self;
    return event->epoch == 1 ? tutti_fail(TUTTI_IO, "the power failed") : TUTTI_OK;
}
static const tutti_callback_kind failing_at_end = {
    .struct_size = sizeof failing_at_end, .name = "failing", .epoch_end = cut_off_at_end};

/* Cut off after the line of the second epoch was written and before the epoch was saved: it is
 * trained again, and has one line. */
TUTTI_TEST(saving_a_line_of_the_log_stands_once_after_a_training_was_cut_off)
{
    for (int append = 0; append < 2; append++) {
        training first = training_begin(NULL), then;
        char path[400], log[400];
        in_folder(&first, "backup", path);
        in_folder(&first, "log.csv", log);
        CHECK(!tutti_fit(first.model, first.data, .epochs = 3, .quiet = true,
                         .callbacks = TUTTI_LIST(tutti_csv_logger(log, .append = append),
                                                 tutti_callback_make(&failing_at_end, NULL),
                                                 tutti_backup(path))));
        CHECK_INT(tutti_close(first.job), 1);
        then = training_begin(NULL);
        CHECK(tutti_fit(
            then.model, then.data, .epochs = 3, .quiet = true,
            .callbacks = TUTTI_LIST(tutti_csv_logger(log, .append = append), tutti_backup(path))));
        char *text = training_text(&first, "log.csv");
        CHECK(strncmp(text, "epoch,", 6) == 0);
        const char *line = text;
        for (int epoch = 0; epoch < 3; epoch++) {
            line = strchr(line, '\n');
            CHECK(line && atoi(++line) == epoch);
        }
        CHECK(strchr(line, '\n')[1] == '\0');
        free(text);
        training_end(then);
        snprintf(path, sizeof path, "rm -rf %s", first.folder);
        CHECK_INT(system(path), 0);
    }
}

/* Cut off in the second epoch by a failure, then started again: the same weights, to the bit, as
 * without. */
TUTTI_TEST(saving_a_backup_goes_on_where_training_was_cut_off)
{
    training whole = training_begin(NULL), first = training_begin(NULL), then;
    char path[400];
    CHECK(tutti_fit(whole.model, whole.data, .epochs = 3, .quiet = true));
    in_folder(&first, "backup", path);
    CHECK(!tutti_fit(first.model, first.data, .epochs = 3, .quiet = true,
                     .callbacks = TUTTI_LIST(tutti_backup(path, .every_steps = 2),
                                             tutti_callback_make(&failing, NULL))));
    CHECK_STATUS(tutti_job_check(first.job), TUTTI_IO);
    CHECK_INT(tutti_close(first.job), 1);
    then = training_begin(NULL);
    const tutti_history *history =
        tutti_fit(then.model, then.data, .epochs = 3, .quiet = true,
                  .callbacks = TUTTI_LIST(tutti_backup(path, .every_steps = 2)));
    CHECK(history);
    CHECK_INT(tutti_history_epochs(history), 2); /* the rest of the second, and the third */
    CHECK_INT(tutti_model_steps(then.model), 12);
    CHECK_NEAR(training_kernel(&then), training_kernel(&whole), 0);
    CHECK_NEAR(tutti_history_get(history, "loss", -1),
               tutti_history_get(whole.model->trainer->history, "loss", -1), 0);
    /* The folder is empty again. */
    const tutti_world *world = tutti__world();
    char **names;
    size_t count;
    CHECK_OK(world->list_folder(world->self, path, &names, &count));
    CHECK_INT(count, 0);
    free(names);
    training_end(whole);
    training_end(then);
    snprintf(path, sizeof path, "rm -rf %s", first.folder);
    CHECK_INT(system(path), 0);
}

static void press_ctrl_c(void *context, tutti_event *event)
{
    (void)context;
    if (event->step == 6)
        raise(SIGINT);
}

/* In a process of its own, which ends as after Ctrl-C; made before this one has threads. */
static void train_until_ctrl_c(const char *save)
{
    pid_t child = fork();
    int status = -1;
    if (child == 0) {
        training t = training_begin((const char *[]){"--save", save, NULL});
        bool done =
            tutti_fit(t.model, t.data, .epochs = 3, .quiet = true,
                      .callbacks = TUTTI_LIST(tutti_lambda_callback(.batch_end = press_ctrl_c)));
        bool right = done && tutti_model_steps(t.model) == 6;
        training_end(t);
        _exit(right ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
}

TUTTI_TEST(saving_on_ctrl_c_and_resuming_by_flags)
{
    char save[] = "/tmp/tutti-resume-XXXXXX", model[100], path[200];
    CHECK(mkdtemp(save) != NULL);
    snprintf(model, sizeof model, "%s/model", save);
    train_until_ctrl_c(model);
    snprintf(path, sizeof path, "%s.safetensors", model);
    CHECK(access(path, F_OK) == 0);
    training whole = training_begin(NULL);
    CHECK(tutti_fit(whole.model, whole.data, .epochs = 3, .quiet = true));
    training then = training_begin((const char *[]){"--save", model, "--resume", NULL});
    tutti_text out = {0};
    CHECK(tutti_fit(then.model, then.data, .epochs = 3, .quiet = true,
                    .callbacks = TUTTI_LIST(tutti__json_lines_into(&out))));
    CHECK_CONTAINS(out.data, "\"epochs\": 3, \"steps\": 12, \"resumed_at\": 6, \"samples\": 24,");
    tutti__text_free(&out);
    CHECK_INT(tutti_model_steps(then.model), 12);
    CHECK_NEAR(training_kernel(&then), training_kernel(&whole), 0);
    training_end(then);
    then = training_begin((const char *[]){"--save", model, "--resume", NULL});
    const tutti_history *history = tutti_fit(then.model, then.data, .epochs = 3, .quiet = true);
    CHECK_INT(tutti_model_steps(then.model), 12); /* the training is over: nothing is left to do, */
    CHECK_INT(tutti_history_epochs(history), 1);  /* and what it reached is still known */
    CHECK(tutti_history_get(history, "loss", -1) > 0);
    CHECK(tutti_fit(then.model, then.data, .epochs = 4, .initial_epoch = 3, .quiet = true));
    CHECK(tutti_fit(whole.model, whole.data, .epochs = 4, .initial_epoch = 3, .quiet = true));
    CHECK_NEAR(training_kernel(&then), training_kernel(&whole), 0);
    training_end(then);
    training_end(whole);
    snprintf(path, sizeof path, "rm -rf %s", save);
    CHECK_INT(system(path), 0);
}

TUTTI_TEST(saving_resume_finds_the_folder_of_a_checkpoint_callback)
{
    training first = training_begin(NULL),
             then = training_begin((const char *[]){"--resume", NULL});
    char path[400];
    in_folder(&first, "ckpt/{step}", path);
    CHECK(tutti_fit(first.model, first.data, .epochs = 2, .quiet = true,
                    .callbacks = TUTTI_LIST(tutti_checkpoint(path))));
    CHECK(tutti_fit(then.model, then.data, .epochs = 3, .quiet = true,
                    .callbacks = TUTTI_LIST(tutti_checkpoint(path))));
    CHECK_INT(tutti_model_steps(then.model), 12);
    training_end(then);
    then = training_begin((const char *[]){"--resume", NULL});
    CHECK(!tutti_fit(then.model, then.data, .epochs = 3, .quiet = true));
    CHECK_CONTAINS(tutti_error_message(), "--save FILE");
    training_end_with(then, 1);
    training_end(first);
}

TUTTI_TEST(saving_where_nothing_can_be_written_fails_before_the_training)
{
    training t = training_begin((const char *[]){"--save", "/proc/nothing/model", NULL});
    CHECK(!tutti_fit(t.model, t.data, .epochs = 3, .quiet = true));
    CHECK_CONTAINS(tutti_error_message(), "/proc/nothing");
    CHECK_INT(tutti_model_steps(t.model), 0);
    training_end_with(t, 1);
}

typedef struct heard {
    int warnings;
    char last[300];
} heard;

static void hear(void *context, tutti_log_level level, const char *message)
{
    heard *h = context;
    h->warnings += level == TUTTI_LOG_WARNING;
    if (level != TUTTI_LOG_DEBUG)
        snprintf(h->last, sizeof h->last, "%s", message);
}

static void write_over(const char *path)
{
    FILE *file = fopen(path, "r+b");
    CHECK(file != NULL);
    fseek(file, -9, SEEK_END);
    fputc(0x55, file);
    fclose(file);
}

/* Each of the files that --save makes. */
TUTTI_TEST(saving_where_a_folder_stands_fails_before_the_training)
{
    static const char *const files[] = {"m.safetensors", "m.json", "m.checkpoint.safetensors"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char place[400], path[400];
        training other = training_begin(NULL);
        training t = training_begin((const char *[]){"--save", in_folder(&other, "m", path), NULL});
        CHECK(mkdir(in_folder(&other, files[i], place), 0777) == 0);
        CHECK(!tutti_fit(t.model, t.data, .epochs = 3, .quiet = true));
        CHECK_CONTAINS(tutti_error_message(), "is a folder");
        CHECK_CONTAINS(tutti_error_message(), files[i]);
        CHECK_INT(tutti_model_steps(t.model), 0);
        CHECK(exists(&other, files[i]));
        training_end_with(t, 1);
        training_end(other);
    }
}

/* A misspelt path is seen before the training. */
TUTTI_TEST(saving_says_which_folder_is_made)
{
    heard h = {0};
    char path[400];
    training other = training_begin(NULL);
    training t =
        training_begin((const char *[]){"--save", in_folder(&other, "typo/m", path), NULL});
    tutti_log_install(hear, &h);
    CHECK(tutti_fit(t.model, t.data, .epochs = 1, .quiet = true));
    tutti_log_install(NULL, NULL);
    CHECK_CONTAINS(h.last, "there was no folder");
    CHECK_CONTAINS(h.last, "typo");
    training_end(t);
    training_end(other);
}

/* A training of 3 epochs with --resume and checkpoints, both in `folder`; what it said. */
static heard resume_in(const char *folder, const char *save)
{
    heard h = {0};
    char path[400];
    training t = training_begin((const char *[]){"--save", save, "--resume", NULL});
    snprintf(path, sizeof path, "%s/ckpt/{step}", folder);
    tutti_log_install(hear, &h);
    CHECK(tutti_fit(t.model, t.data, .epochs = 3, .quiet = true,
                    .callbacks =
                        TUTTI_LIST(tutti_checkpoint(path, .best_only = true, .monitor = "loss"))));
    tutti_log_install(NULL, NULL);
    CHECK_INT(tutti_model_steps(t.model), 12);
    training_end(t);
    return h;
}

/* What Ctrl-C left is farther than the folder's best; damaged checkpoints are told of. */
TUTTI_TEST(saving_resume_takes_the_farthest_whole_checkpoint)
{
    char folder[] = "/tmp/tutti-farthest-XXXXXX", save[100], path[400];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(save, sizeof save, "%s/model", folder);
    train_until_ctrl_c(save); /* at step 6 */
    heard h = resume_in(folder, save);
    CHECK_INT(h.warnings, 0);
    CHECK_CONTAINS(h.last, "step 6");
    h = resume_in(folder, save); /* that checkpoint is gone; those of the folder are there */
    CHECK_CONTAINS(h.last, "ckpt/12.safetensors, step 12");
    snprintf(path, sizeof path, "%s/ckpt/12.safetensors", folder);
    write_over(path);
    h = resume_in(folder, save);
    CHECK_INT(h.warnings, 1);
    CHECK_CONTAINS(h.last, "ckpt/8.safetensors, step 8");
    snprintf(path, sizeof path, "rm -rf %s/ckpt", folder);
    CHECK_INT(system(path), 0);
    h = resume_in(folder, save);
    CHECK_CONTAINS(h.last, "training begins anew");
    snprintf(path, sizeof path, "rm -rf %s", folder);
    CHECK_INT(system(path), 0);
}

static void run_command(void *context, tutti_event *event)
{
    (void)event;
    CHECK_INT(system(context), 0);
}

/* Where the training stands cannot be saved, as on a full disk: it goes on, and the job's end says
 * so, log or not. */
TUTTI_TEST(saving_that_fails_beside_a_training_is_said_at_the_end)
{
    char folder[] = "/tmp/tutti-unsaved-XXXXXX", save[100], path[400];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(save, sizeof save, "%s/model", folder);
    snprintf(path, sizeof path, "mkdir -p %s.checkpoint.safetensors/inside", save);
    training t = training_begin((const char *[]){"--save", save, NULL});
    tutti_callback *late = tutti_lambda_callback(.epoch_begin = run_command, .context = path);
    CHECK(tutti_fit(t.model, t.data, .epochs = 2, .quiet = true, .callbacks = TUTTI_LIST(late)));
    CHECK_OK(tutti_job_check(t.job));
    CHECK(t.job->notes > 0);
    CHECK_CONTAINS(t.job->note, "could not be saved: ");
    CHECK_CONTAINS(t.job->note, "model.checkpoint.safetensors");
    t.job->notes = 0; /* nothing on standard error here */
    training_end(t);
    snprintf(path, sizeof path, "rm -rf %s", folder);
    CHECK_INT(system(path), 0);
}

/* A training with --resume that cannot go on from what is there. */
static void check_refused(const char *folder, const char *save, bool callback)
{
    char path[400];
    training t = training_begin((const char *[]){"--save", save, "--resume", NULL});
    snprintf(path, sizeof path, "%s/ckpt/{step}", folder);
    if (callback)
        CHECK(!tutti_fit(t.model, t.data, .epochs = 3, .quiet = true,
                         .callbacks = TUTTI_LIST(tutti_checkpoint(path))));
    else
        CHECK(!tutti_fit(t.model, t.data, .epochs = 3, .quiet = true));
    CHECK_STATUS(tutti_job_check(t.job), TUTTI_CORRUPT);
    CHECK_CONTAINS(tutti_error_message(), "cannot be used");
    CHECK_INT(tutti_model_steps(t.model), 0);
    training_end_with(t, 1);
}

/* Without a good one before it, a damaged checkpoint is not taken for none and written over. */
TUTTI_TEST(saving_resume_does_not_begin_anew_over_damaged_checkpoints)
{
    char folder[] = "/tmp/tutti-damaged-XXXXXX", save[100], path[400];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(save, sizeof save, "%s/model", folder);
    train_until_ctrl_c(save);
    snprintf(path, sizeof path, "%s.checkpoint.safetensors", save);
    write_over(path);
    training t = training_begin((const char *[]){"--save", save, "--resume", NULL});
    CHECK(tutti_fit(t.model, t.data, .epochs = 1, .quiet = true)); /* from the one before */
    training_end(t);
    write_over(path);
    snprintf(path, sizeof path, "%s.checkpoint.safetensors.previous", save);
    write_over(path);
    check_refused(folder, save, false);
    snprintf(path, sizeof path,
             "rm %s.checkpoint.*; mkdir %s/ckpt; cp %s.safetensors %s/ckpt/8.safetensors", save,
             folder, save, folder);
    CHECK_INT(system(path), 0);
    snprintf(path, sizeof path, "%s/ckpt/8.safetensors", folder);
    write_over(path);
    check_refused(folder, save, true);
    snprintf(path, sizeof path, "rm -rf %s", folder);
    CHECK_INT(system(path), 0);
}

/* A training that is killed behind the last step of an epoch still knows what the epoch gave. */
TUTTI_TEST(saving_at_the_last_step_keeps_the_numbers_of_the_epoch)
{
    char folder[] = "/tmp/tutti-last-XXXXXX", path[100];
    CHECK(mkdtemp(folder) != NULL);
    training first = training_begin(NULL), then = training_begin(NULL);
    snprintf(path, sizeof path, "%s/{step}", folder);
    const tutti_history *whole =
        tutti_fit(first.model, first.data, .epochs = 1, .quiet = true,
                  .callbacks = TUTTI_LIST(tutti_checkpoint(path, .every_steps = 4)));
    snprintf(path, sizeof path, "%s/4", folder);
    CHECK_OK(tutti_restore_checkpoint(then.model, path));
    const tutti_history *rest = tutti_fit(then.model, then.data, .epochs = 1, .quiet = true);
    CHECK_INT(tutti_model_steps(then.model), 4);
    CHECK_NEAR(tutti_history_get(rest, "loss", -1), tutti_history_get(whole, "loss", -1), 0);
    training_end(first);
    training_end(then);
    snprintf(path, sizeof path, "rm -rf %s", folder);
    CHECK_INT(system(path), 0);
}
