/* resume_test.c: processes whose disks hold different checkpoints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "nn/training/examples_test.h"
#include "parallel/strategies/workers.h"

enum { WIDTH = 4, CLASSES = 3, ROWS = 16, BATCH = 8, STEPS = ROWS / BATCH };

/* What each of two processes finds on its own disk. */
typedef struct disks {
    bool loop;     /* written by hand */
    int epochs[2]; /* of the checkpoint; 0: there is none */
    const char *seeds[2];
    const char *complaint; /* what both are told; NULL: they go on */
} disks;

static tutti_job *open_job(const char *save, const char *seed, bool resume)
{
    const char *list[] = {"p", "--quiet", "--save", save, "--seed", seed, "--resume", NULL};
    char *copy[8] = {0}, **argv = copy;
    int argc = resume ? 7 : 6;
    for (int i = 0; i < argc; i++)
        copy[i] = (char *)(uintptr_t)list[i];
    return tutti_open(&argc, &argv);
}

static void train_by_hand(tutti_job *job, tutti_model *m, tutti_dataset *data, int epochs)
{
    tutti_optimizer adam = tutti_adam();
    tutti_loss loss = tutti_sparse_cross_entropy(.from_logits = true);
    tutti_eager *e = tutti_model_eager(m);
    tutti_progress *p = tutti_progress_open(job, epochs, STEPS, .model = m);
    while (tutti_progress_epoch(p)) {
        TUTTI_EACH_BATCH(data, x, y) {
            TUTTI_STEP(e) {
                tutti_sym value;
                TUTTI_TAPE(tape, e)
                    value = tutti_compute_loss(&loss, tutti_eager_feed(e, y),
                                               tutti_apply(m, tutti_eager_feed(e, x)));
                tutti_tape_minimize(&tape, adam, value, m);
            }
            if (!tutti_progress_step(p, BATCH))
                break;
        }
    }
}

/* Steps done, or -1. */
static int64_t train(const disks *d, tutti_job *job, int epochs)
{
    tutti_dataset *data =
        tutti__test_examples(job, (tutti_test_examples){ROWS, WIDTH, CLASSES, 1, BATCH});
    tutti_model *m = tutti_sequential(job, tutti_input_shape(WIDTH), tutti_dense(CLASSES));
    tutti_compile(m, .optimizer = tutti_adam(),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
    if (d->loop)
        train_by_hand(job, m, data, epochs);
    else
        tutti_fit(m, data, .epochs = epochs, .quiet = true);
    return tutti_job_ok(job) ? tutti_model_steps(m) : -1;
}

static tutti_status go_on(const disks *d, tutti_strategy *strategy, const char *save)
{
    tutti_job *job = open_job(save, "1", true);
    int64_t steps = 0;
    TUTTI_WITH_STRATEGY(strategy)
    {
        steps = train(d, job, 3);
    }
    tutti_status status = tutti_job_check(job);
    bool told = d->complaint && status == TUTTI_INVALID &&
                strstr(tutti_error_message(), d->complaint) &&
                strstr(tutti_error_message(), "m.checkpoint.safetensors");
    if (!d->complaint)
        TUTTI_TRY(status);
    else if (!told)
        fprintf(stderr, "%s\n", tutti_error_message());
    tutti_close(job);
    WORKER_EXPECT(!d->complaint || told);
    WORKER_EXPECT(d->complaint || d->loop || steps == (int64_t)3 * STEPS);
    return TUTTI_OK;
}

static tutti_status work(tutti_strategy *strategy, void *context)
{
    const disks *d = context;
    char folder[] = "/tmp/tutti-disk-XXXXXX", save[64], command[128];
    int rank = tutti_strategy_rank(strategy);
    WORKER_EXPECT(mkdtemp(folder) != NULL);
    snprintf(save, sizeof save, "%s/m", folder);
    if (d->epochs[rank] > 0) {
        tutti_job *job = open_job(save, d->seeds[rank], false);
        train(d, job, d->epochs[rank]);
        WORKER_EXPECT(tutti_close(job) == 0);
    }
    tutti_status status = go_on(d, strategy, save);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    WORKER_EXPECT(system(command) == 0);
    return status;
}

static void check_disks(bool loop)
{
    disks none = {loop, {2, 0}, {"1", "1"}, "rank 1 found no checkpoint"};
    disks late = {loop, {0, 2}, {"1", "1"}, "rank 0 found no checkpoint"};
    disks older = {loop, {2, 1}, {"1", "1"}, "rank 1 found a checkpoint of step 2"};
    disks other = {loop, {2, 2}, {"1", "2"}, "rank 1 found another checkpoint of step 4"};
    disks alike = {loop, {2, 2}, {"1", "1"}, NULL};
    disks nowhere = {loop, {0, 0}, {"1", "1"}, NULL};
    disks *all[] = {&none, &late, &older, &other, &alike, &nowhere};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tutti__test_workers(2, NULL, work, all[i]);
}

TUTTI_TEST(processes_that_found_different_checkpoints_do_not_train)
{
    check_disks(false);
}

TUTTI_TEST(loops_of_processes_that_found_different_checkpoints_do_not_begin)
{
    check_disks(true);
}
