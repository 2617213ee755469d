/* memory_test.c: what callbacks remember goes into checkpoints and comes back. */
#include "nn/callbacks/training.h"

/* Validation losses that get better, then no more; the training does not depend on them. */
static tutti_status fake_loss(void *self, tutti_event *event)
{
    static const double losses[] = {5, 4, 4.5, 4.2, 3, 3.3, 3.2, 3.1, 3.05, 3.5, 3.6, 3.7, 3.8};
    (void)self;
    tutti_logs_set((tutti_logs *)(uintptr_t)event->logs, "val_loss",
                   losses[event->epoch < 13 ? event->epoch : 12]);
    return TUTTI_OK;
}
static const tutti_callback_kind faker = {
    .struct_size = sizeof(tutti_callback_kind), .name = "faker", .epoch_end = fake_loss};

typedef struct course {
    int epochs;
    double rates[20], kernel;
    int rate_count;
} course;

static void note_rate(void *context, tutti_event *event)
{
    course *c = context;
    c->rates[c->rate_count++] = tutti_get_learning_rate(event->model);
    c->epochs = event->epoch + 1;
}

static void stop_after(void *context, tutti_event *event)
{
    if (event->step == *(int64_t *)context)
        tutti_stop_training(event->model);
}

/* Up to 13 epochs of 4 steps, or to a step; with checkpoints in a folder. The saving callback comes
 * first, where what the others change at the same moment would be lost if it were told first. */
static void run_course(const char *folder, int64_t until, course *ret)
{
    training t = training_begin(NULL);
    char path[300], best[300], latest[400];
    snprintf(path, sizeof path, "%s/all/{step}", folder);
    snprintf(best, sizeof best, "%s/best/one", folder);
    snprintf(latest, sizeof latest, "%s/all", folder);
    if (tutti_latest_checkpoint(latest, sizeof latest, latest) == TUTTI_OK)
        CHECK_OK(tutti_restore_checkpoint(t.model, latest));
    CHECK(tutti_fit(
        t.model, t.data, .epochs = 13, .quiet = true, .validation = t.data,
        .callbacks =
            TUTTI_LIST(tutti_checkpoint(path, .every_steps = 2),
                       tutti_checkpoint(best, .best_only = true), tutti_callback_make(&faker, NULL),
                       tutti_reduce_lr_on_plateau(.patience = 2, .factor = 0.5, .cooldown = 1),
                       tutti_early_stopping(.patience = 6, .restore_best = true),
                       tutti_lambda_callback(.epoch_end = note_rate, .context = ret),
                       tutti_lambda_callback(.batch_end = stop_after, .context = &until))));
    ret->kernel = training_kernel(&t);
    training_end(t);
}

static int64_t best_step(const char *folder)
{
    training t = training_begin(NULL);
    char best[300];
    snprintf(best, sizeof best, "%s/best/one", folder);
    CHECK_OK(tutti_restore_checkpoint(t.model, best));
    int64_t step = tutti_model_steps(t.model);
    training_end(t);
    return step;
}

TUTTI_TEST(callbacks_go_on_as_if_training_had_never_stopped)
{
    char whole[] = "/tmp/tutti-whole-XXXXXX", parts[] = "/tmp/tutti-parts-XXXXXX", command[200];
    CHECK(mkdtemp(whole) != NULL && mkdtemp(parts) != NULL);
    course a = {0}, b = {0};
    run_course(whole, -1, &a);
    CHECK_INT(a.epochs, 11); /* best in epoch 5, and six more */
    CHECK(a.rates[10] < a.rates[0] / 2);
    for (int64_t until = 6; until <= 42; until += 4) { /* in the middle of epochs, and after them */
        course part = {0};
        run_course(parts, until + until / 4 % 2 * 2, &part);
    }
    run_course(parts, -1, &b);
    CHECK_INT(b.epochs, a.epochs);
    CHECK_NEAR(b.rates[b.rate_count - 1], a.rates[a.rate_count - 1], 0);
    CHECK_NEAR(b.kernel, a.kernel, 0);
    CHECK_INT(best_step(parts), best_step(whole));
    CHECK_INT(best_step(parts), 20);
    course after = {0};
    run_course(parts, -1, &after); /* only the end of its last epoch was not saved */
    CHECK_INT(after.rate_count, 1);
    CHECK_INT(after.epochs, a.epochs);
    CHECK_NEAR(after.kernel, a.kernel, 0);
    snprintf(command, sizeof command, "rm -rf %s %s", whole, parts);
    CHECK_INT(system(command), 0);
}
