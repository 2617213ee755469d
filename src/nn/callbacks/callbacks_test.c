/* callbacks_test.c: callbacks round a small training. */
#include <math.h>
#include <signal.h>

#include "io/json.h"
#include "nn/callbacks/training.h"

/* ---- lambda, rates ---- */

typedef struct seen {
    int train_begin, train_end, epoch_begin, epoch_end, batch_begin, batch_end, validation;
    int stop_after; /* batches; 0: never */
    double rates[8];
} seen;

static void see_train_begin(void *context, tutti_event *event)
{
    seen *s = context;
    CHECK(event->model && !event->logs);
    s->train_begin++;
}

static void see_train_end(void *context, tutti_event *event)
{
    seen *s = context;
    CHECK(!event->interrupted);
    s->train_end++;
}

static void see_epoch_begin(void *context, tutti_event *event)
{
    seen *s = context;
    CHECK_INT(event->epoch, s->epoch_begin);
    s->epoch_begin++;
}

static void see_epoch_end(void *context, tutti_event *event)
{
    seen *s = context;
    CHECK(isfinite(tutti_logs_get(event->logs, "loss")));
    CHECK(isfinite(tutti_logs_get(event->logs, "mae")));
    if (s->epoch_end < 8)
        s->rates[s->epoch_end] = tutti_logs_get(event->logs, "lr");
    s->epoch_end++;
}

static void see_batch_begin(void *context, tutti_event *event)
{
    seen *s = context;
    (void)event;
    s->batch_begin++;
}

static void see_batch_end(void *context, tutti_event *event)
{
    seen *s = context;
    if (event->validating) {
        s->validation++;
        return;
    }
    CHECK_INT(event->step, s->batch_end + 1);
    CHECK(isfinite(tutti_logs_get(tutti_event_logs(event), "loss")));
    if (++s->batch_end == s->stop_after)
        tutti_stop_training(event->model);
}

static tutti_callback *watch(seen *s)
{
    return tutti_lambda_callback(.train_begin = see_train_begin, .train_end = see_train_end,
                                 .epoch_begin = see_epoch_begin, .epoch_end = see_epoch_end,
                                 .batch_begin = see_batch_begin, .batch_end = see_batch_end,
                                 .context = s);
}

TUTTI_TEST(callbacks_of_the_user_are_told_everything)
{
    training t = training_begin(NULL);
    seen s = {0};
    const tutti_history *history = tutti_fit(t.model, t.data, .epochs = 3, .validation = t.data,
                                             .callbacks = TUTTI_LIST(watch(&s)), .quiet = true);
    CHECK(history);
    CHECK_INT(tutti_history_epochs(history), 3);
    CHECK_INT(s.train_begin, 1);
    CHECK_INT(s.train_end, 1);
    CHECK_INT(s.epoch_begin, 3);
    CHECK_INT(s.epoch_end, 3);
    CHECK_INT(s.batch_begin, 24);
    CHECK_INT(s.batch_end, 12);
    CHECK_INT(s.validation, 12);
    training_end(t);
}

static void interrupt_validation(void *context, tutti_event *event)
{
    int *batches = context;
    if (event->validating && ++*batches == 3)
        raise(SIGTERM);
}

static void see_interruption(void *context, tutti_event *event)
{
    bool *interrupted = context;
    *interrupted = event->interrupted;
}

/* The data to validate on has no end: a checkpoint must not have to wait for one. */
TUTTI_TEST_ALONE(validation_ends_at_a_signal)
{
    training t = training_begin(NULL);
    int batches = 0;
    bool interrupted = false;
    const tutti_history *history = tutti_fit(
        t.model, t.data, .epochs = 3, .validation = tutti_repeat(t.data, 0),
        .callbacks = TUTTI_LIST(
            tutti_lambda_callback(.batch_end = interrupt_validation, .context = &batches),
            tutti_lambda_callback(.train_end = see_interruption, .context = &interrupted)),
        .quiet = true);
    CHECK(history);
    CHECK_INT(tutti_history_epochs(history), 0); /* its epoch is not over */
    CHECK_INT(batches, 3);
    CHECK(interrupted);
    training_end_with(t, TUTTI_EXIT_PREEMPTED);
}

TUTTI_TEST(callbacks_can_stop_training)
{
    training t = training_begin(NULL);
    seen s = {.stop_after = 6};
    CHECK(
        tutti_fit(t.model, t.data, .epochs = 5, .callbacks = TUTTI_LIST(watch(&s)), .quiet = true));
    CHECK_INT(s.batch_end, 6);
    CHECK_INT(s.epoch_end, 2);
    CHECK_INT(s.train_end, 1);
    training_end(t);
}

static double decay(int epoch)
{
    return epoch < 1 ? 0.2 : 0.2 / (1 << epoch);
}

TUTTI_TEST(callbacks_schedule_sets_the_rate_of_each_epoch)
{
    training t = training_begin(NULL);
    seen s = {0};
    CHECK(tutti_fit(t.model, t.data, .epochs = 3,
                    .callbacks = TUTTI_LIST(watch(&s), tutti_learning_rate_scheduler(decay)),
                    .quiet = true));
    CHECK_NEAR(s.rates[0], 0.2, 1e-9);
    CHECK_NEAR(s.rates[1], 0.1, 1e-9);
    CHECK_NEAR(s.rates[2], 0.05, 1e-9);
    CHECK_NEAR(tutti_get_learning_rate(t.model), 0.05, 1e-9);
    training_end(t);
}

TUTTI_TEST(callbacks_schedule_takes_schedules_by_step)
{
    training t = training_begin(NULL);
    seen s = {0};
    tutti_schedule steps = tutti_step_decay(.learning_rate = 0.4, .every = 4, .factor = 0.5);
    CHECK(tutti_fit(t.model, t.data, .epochs = 3,
                    .callbacks = TUTTI_LIST(watch(&s), tutti_learning_rate_scheduler(steps)),
                    .quiet = true));
    CHECK_NEAR(s.rates[0], 0.4, 1e-9);
    CHECK_NEAR(s.rates[1], 0.2, 1e-9);
    CHECK_NEAR(s.rates[2], 0.1, 1e-9);
    training_end(t);
}

static double nonsense(int epoch)
{
    return epoch == 1 ? NAN : 0.1;
}

TUTTI_TEST(callbacks_schedule_refuses_rates_that_are_none)
{
    training t = training_begin(NULL);
    CHECK(!tutti_fit(t.model, t.data, .epochs = 3,
                     .callbacks = TUTTI_LIST(tutti_learning_rate_scheduler(nonsense)),
                     .quiet = true));
    CHECK_STATUS(tutti_job_check(t.job), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "no learning rate");
    CHECK_CONTAINS(tutti_error_message(), "schedule");
    training_end_with(t, 1);
}

/* ---- monitors ---- */

/* Fixed logs for epochs, told to a callback by hand. */
static tutti_status tell_epoch(tutti_callback *callback, training *t, int epoch, const char *name,
                               double value)
{
    tutti_logs logs = {0};
    tutti_logs_set(&logs, name, value);
    tutti_event event = {.model = t->model, .epoch = epoch, .epochs = 99, .logs = &logs};
    return callback->kind->epoch_end(callback->self, &event);
}

static bool stopped(training *t)
{
    bool stop = t->model->trainer->stop;
    t->model->trainer->stop = false;
    return stop;
}

TUTTI_TEST(callbacks_early_stopping_waits_for_its_patience)
{
    training t = training_begin(NULL);
    CHECK_OK(tutti_build(t.model, TUTTI_F32, 1));
    tutti_callback *c = tutti_early_stopping(.patience = 2, .min_delta = 0.01);
    static const double losses[] = {1, 0.9, 0.895, 0.7, 0.8, 0.695};
    for (int i = 0; i < 6; i++) {
        CHECK_OK(tell_epoch(c, &t, i, "val_loss", losses[i]));
        CHECK_INT(stopped(&t), i == 5); /* 0.695 is not better by more than 0.01 */
    }
    tutti_callback_release(c);
    c = tutti_early_stopping(.monitor = "val_accuracy", .patience = 1);
    static const double accuracies[] = {0.5, 0.6, 0.6};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(tell_epoch(c, &t, i, "other", 0)); /* an epoch without validation */
        CHECK(!stopped(&t));
        CHECK_OK(tell_epoch(c, &t, i, "val_accuracy", accuracies[i]));
        CHECK_INT(stopped(&t), i == 2);
    }
    tutti_callback_release(c);
    training_end(t);
}

TUTTI_TEST(callbacks_early_stopping_restores_the_best_weights)
{
    training t = training_begin(NULL);
    CHECK_OK(tutti_build(t.model, TUTTI_F32, 1));
    tutti_callback *c = tutti_early_stopping(.patience = 1, .restore_best = true);
    tutti_tensor *value;
    tutti_event event = {.model = t.model};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){1, 1}, (float[]){(float)i}, &value));
        CHECK_OK(tutti_set_weight(t.model, "d/kernel", value));
        tutti_tensor_release(value);
        CHECK_OK(tell_epoch(c, &t, i, "val_loss", i == 1 ? 0.5 : 1));
    }
    CHECK(stopped(&t));
    CHECK_NEAR(training_kernel(&t), 2, 0);
    CHECK_OK(c->kind->train_end(c->self, &event));
    CHECK_NEAR(training_kernel(&t), 1, 0);
    tutti_callback_release(c);
    training_end(t);
}

TUTTI_TEST(callbacks_monitor_refuses_a_name_that_will_never_be)
{
    training t = training_begin(NULL);
    CHECK(!tutti_fit(t.model, t.data, .quiet = true,
                     .callbacks = TUTTI_LIST(tutti_early_stopping(.monitor = "val_los"))));
    CHECK_STATUS(tutti_job_check(t.job), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "val_los");
    CHECK_CONTAINS(tutti_error_message(), "val_mae");
    training_end_with(t, 1);
}

TUTTI_TEST(callbacks_monitor_of_validation_needs_validation)
{
    training t = training_begin(NULL);
    CHECK(!tutti_fit(t.model, t.data, .quiet = true,
                     .callbacks = TUTTI_LIST(tutti_early_stopping(.patience = 1))));
    CHECK_STATUS(tutti_job_check(t.job), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "monitor 'loss'");
    training_end_with(t, 1);
}

/* Keras' numbers for these losses: factor 0.5, patience 2, cooldown 1, min_lr 0.025. */
TUTTI_TEST(callbacks_reduce_lr_on_plateau_as_keras_does)
{
    static const double losses[] = {1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
    static const double rates[] = {.1,   .1,   .05,  .05,  .025, .025,
                                   .025, .025, .025, .025, .025, .025};
    training t = training_begin(NULL);
    CHECK_OK(tutti_build(t.model, TUTTI_F32, 1));
    tutti_callback *c =
        tutti_reduce_lr_on_plateau(.factor = 0.5, .patience = 2, .cooldown = 1, .min_lr = 0.025);
    for (int i = 0; i < 12; i++) {
        CHECK_OK(tell_epoch(c, &t, i, "val_loss", losses[i]));
        CHECK_NEAR(tutti_get_learning_rate(t.model), rates[i], 1e-9);
    }
    tutti_callback_release(c);
    training_end(t);
}

TUTTI_TEST(callbacks_terminate_on_nan_ends_training)
{
    training t = training_begin(NULL);
    seen s = {0};
    tutti_set_learning_rate(t.model, 1e30);
    tutti_callback *own = tutti_lambda_callback(.epoch_begin = see_epoch_begin, .context = &s);
    const tutti_history *history =
        tutti_fit(t.model, t.data, .epochs = 50, .quiet = true,
                  .callbacks = TUTTI_LIST(tutti_terminate_on_nan(), own));
    CHECK(history && tutti_history_diverged(history));
    CHECK_INT(s.epoch_begin, 1);
    CHECK(tutti_model_steps(t.model) <= 4);
    training_end(t);
}

/* ---- what is written ---- */

TUTTI_TEST(callbacks_csv_logger_writes_one_line_an_epoch)
{
    training t = training_begin(NULL);
    char path[300];
    snprintf(path, sizeof path, "%s/log.csv", t.folder);
    for (int round = 0; round < 2; round++)
        CHECK(tutti_fit(t.model, t.data, .epochs = 2, .quiet = true,
                        .callbacks = TUTTI_LIST(tutti_csv_logger(path, .append = round == 1))));
    char *text = training_text(&t, "log.csv");
    CHECK(strncmp(text, "epoch,loss,lr,mae\n0,", 20) == 0);
    int lines = 0;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    CHECK_INT(lines, 5);
    free(text);
    CHECK(tutti_fit(t.model, t.data, .quiet = true,
                    .callbacks = TUTTI_LIST(tutti_csv_logger(path, .separator = ';'))));
    text = training_text(&t, "log.csv");
    CHECK(strncmp(text, "epoch;loss;lr;mae\n0;", 20) == 0);
    free(text);
    training_end(t);
}

TUTTI_TEST(callbacks_json_lines_are_objects_with_keras_names)
{
    training t = training_begin(NULL);
    tutti_text out = {0};
    tutti_arena arena = {0};
    CHECK(tutti_fit(t.model, t.data, .epochs = 2, .validation = t.data, .quiet = true,
                    .callbacks = TUTTI_LIST(tutti__json_lines_into(&out))));
    const char *at = out.data;
    static const char *const keys[] = {"loss", "mae",     "val_loss",          "val_mae",
                                       "lr",   "seconds", "samples_per_second"};
    for (int i = 0; i < 3; i++) {
        const tutti_json *root;
        const char *end = strchr(at, '\n');
        CHECK(end);
        CHECK_OK(tutti__json_parse("line", at, (size_t)(end - at), NULL, &arena, &root));
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            CHECK(isfinite(tutti__json_real(tutti__json_get(root, keys[k]), NAN)));
        if (i < 2)
            CHECK_INT(tutti__json_int(tutti__json_get(root, "epoch"), -1), i + 1);
        CHECK_INT(tutti__json_bool(tutti__json_get(root, "done"), false), i == 2);
        CHECK_INT(tutti__json_int(tutti__json_get(root, "steps"), -1), i == 2 ? 8 : -1);
        at = end + 1;
    }
    CHECK_STR(at, "");
    tutti__arena_free(&arena);
    tutti__text_free(&out);
    training_end(t);
}

TUTTI_TEST(callbacks_progress_writes_plain_lines_without_a_terminal)
{
    training t = training_begin(NULL);
    tutti_text out = {0};
    CHECK(tutti_fit(t.model, t.data, .epochs = 2, .validation = t.data, .quiet = true,
                    .callbacks = TUTTI_LIST(tutti__progress_into(&out, false, 80))));
    CHECK(strncmp(out.data, "Epoch 1/2\n4/4 ", 14) == 0);
    CHECK_CONTAINS(out.data, "/step  loss ");
    CHECK_CONTAINS(out.data, "  val_loss ");
    CHECK_CONTAINS(out.data, "  lr 0.1");
    CHECK_CONTAINS(out.data, "\nEpoch 2/2\n4/4 ");
    CHECK(!strchr(out.data, '\r'));
    CHECK(!strchr(out.data, '\033'));
    tutti__text_free(&out);
    training_end(t);
}

TUTTI_TEST(callbacks_progress_shows_no_sign_of_what_is_no_number)
{
    training t = training_begin(NULL);
    tutti_text out = {0};
    tutti_callback *bar = tutti__progress_into(&out, false, 80);
    tutti_logs logs = {0};
    tutti_logs_set(&logs, "val_accuracy", -NAN);
    tutti_event event = {.model = t.model, .epochs = 1, .batch_count = 1, .logs = &logs};
    CHECK_OK(bar->kind->epoch_begin(bar->self, &event));
    CHECK_OK(bar->kind->epoch_end(bar->self, &event));
    CHECK_CONTAINS(out.data, "  val_accuracy nan");
    tutti__text_free(&out);
    tutti_callback_release(bar);
    training_end(t);
}

TUTTI_TEST(callbacks_progress_stays_inside_the_terminal)
{
    training t = training_begin(NULL);
    tutti_text out = {0};
    tutti_callback *bar = tutti__progress_into(&out, true, 60);
    tutti_logs logs = {0};
    tutti_logs_set(&logs, "loss", 0.19214);
    tutti_logs_set(&logs, "accuracy", 0.94421);
    tutti_logs_set(&logs, "a_rather_long_name_of_a_metric", 3e-5);
    tutti_event event = {.model = t.model, .epochs = 12, .batch_count = 938, .logs = &logs};
    CHECK_OK(bar->kind->epoch_begin(bar->self, &event));
    CHECK_STR(out.data, "\r\033[KEpoch 1/12\n");
    tutti__text_free(&out);
    event.batch = 468;
    event.seconds = 0.9;
    CHECK_OK(bar->kind->batch_end(bar->self, &event)); /* too soon after the last */
    CHECK(out.size == 0);
    const tutti_world *world = tutti__world();
    world->sleep_ns(world->self, 110000000);
    CHECK_OK(bar->kind->batch_end(bar->self, &event));
    CHECK_CONTAINS(out.data, "\r\033[K469/938 ━━━━━━━━━━────────── ETA 0.9 s  1.9 ms/step");
    int columns = 0;
    for (const char *at = out.data + 4; *at; at++)
        columns += ((unsigned char)*at & 0xc0) != 0x80;
    CHECK_INT(columns, 59);
    tutti__text_free(&out);
    event.batch = 938;
    event.seconds = 1.8;
    CHECK_OK(bar->kind->epoch_end(bar->self, &event));
    CHECK_CONTAINS(out.data, "938/938 ━━━━━━━━━━━━━━━━━━━━ 1.8 s");
    CHECK_CONTAINS(out.data, "  loss 0.1921  accuracy 0.9442  a_rather_long_name_of_a_metric "
                             "3.00e-05\n");
    tutti__text_free(&out);
    tutti_callback_release(bar);
    training_end(t);
}
