/* owned_test.c: processes of a job share the optimizer's updates: weights, slots, checkpoints and
 * what one process reads alone are those of processes that each update everything. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nn/model/model.h"
#include "nn/training/examples_test.h"
#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

enum { EXAMPLES = 49, WIDTH = 30, HIDDEN = 24, CLASSES = 5, MOST = 8192, RANKS = 8 };

typedef struct outcome {
    double loss;
    int in_parts; /* variables of which a process had a part, while it trained */
    int count;
    float values[MOST]; /* of all variables, slots too */
    int read;
    float alone[MOST]; /* of the slots, read by this process alone in the middle */
} outcome;

typedef struct trial {
    tutti_optimizer optimizer;
    int accumulate, epochs, workers;
    const char *engine;
    int parts;
    int64_t bucket;          /* bytes; 0: all gradients in one */
    int reader;              /* reads slots in the middle; -1: nobody */
    const char *save, *load; /* rank 0 saves alone, in the middle */
    bool dies;               /* the last rank, after rank 0 has saved */
    outcome *outcomes;       /* by rank, in memory of all processes */
    tutti_model *model;
} trial;

static tutti_dataset *examples(tutti_job *job)
{
    /* the last batch has 9: new to some processes only */
    return tutti__test_examples(job, (tutti_test_examples){EXAMPLES, WIDTH, CLASSES, 3, 10});
}

static int by_name(const void *a, const void *b)
{
    const tutti_state_variable *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Of all variables, or of slots alone, in the order of their names. */
static tutti_status read_all(const tutti_model *m, bool slots, float *values, int *ret_count)
{
    tutti_state *state = tutti__engine_state(m->engine);
    tutti_state_variable *all[64], *v;
    size_t count = 0;
    for (size_t i = 0; (v = tutti__state_at(state, i)) && count < 64; i++)
        if (v->type.dtype == TUTTI_F32 && !v->partial && !v->averaged && v->pieces.count > 0 &&
            (!slots || v->slot_of[0]))
            all[count++] = v;
    qsort(all, count, sizeof *all, by_name);
    *ret_count = 0;
    for (size_t i = 0; i < count; i++) {
        tutti_tensor *value;
        TUTTI_TRY(tutti__variable_get(state, all[i], &value));
        for (int64_t k = 0; k < tutti_tensor_count(value) && *ret_count < MOST; k++)
            values[(*ret_count)++] = (float)tutti_tensor_get(value, k);
        tutti_tensor_release(value);
    }
    return TUTTI_OK;
}

/* After a step: what lies in parts is counted; one process reads, one saves, without the others. */
static void look(void *self, tutti_event *event)
{
    trial *t = self;
    int rank = tutti_strategy_rank(tutti__engine_strategy(t->model->engine));
    outcome *o = &t->outcomes[rank];
    tutti_state *state = tutti__engine_state(t->model->engine);
    int in_parts = 0;
    for (size_t i = 0; tutti__state_at(state, i); i++)
        in_parts += tutti__state_at(state, i)->held == TUTTI_HELD_IN_PARTS;
    o->in_parts = in_parts > o->in_parts ? in_parts : o->in_parts;
    if (event->step == 4 && t->reader == rank)
        CHECK_OK(read_all(t->model, true, o->alone, &o->read));
    if (event->step == 7 && t->save && rank == 0)
        CHECK_OK(tutti_save_checkpoint_async(t->model, t->save));
    if (event->step == 9 && t->dies && rank == t->workers - 1)
        _exit(0);
}

static tutti_status work(tutti_strategy *s, void *context)
{
    trial t = *(trial *)context;
    outcome *o = &t.outcomes[tutti_strategy_rank(s)];
    tutti_job *job = tutti_open(NULL, NULL);
    TUTTI_WITH_STRATEGY(s)
    {
        tutti_model *m = t.model =
            tutti_sequential(job, tutti_dense(HIDDEN, .activation = TUTTI_RELU), tutti_batch_norm(),
                             tutti_dense(CLASSES));
        tutti_compile(m, .optimizer = t.optimizer,
                      .loss = tutti_sparse_cross_entropy(.from_logits = true),
                      .accumulate = t.accumulate);
        tutti_build(m, TUTTI_F32, WIDTH);
        if (t.load)
            TUTTI_TRY(tutti_restore_checkpoint(m, t.load));
        const tutti_history *h = tutti_fit(
            m, examples(job), .epochs = t.epochs ? t.epochs : 3, .quiet = true,
            .callbacks = TUTTI_LIST(tutti_lambda_callback(.context = &t, .batch_end = look)));
        if (t.dies) { /* the others say so, and nothing hangs */
            WORKER_EXPECT(!h && tutti_job_check(job) != TUTTI_OK);
            (void)tutti_checkpoint_wait(m);
            _exit(0);
        }
        TUTTI_TRY(tutti_job_check(job));
        o->loss = tutti_history_get(h, "loss", tutti_history_epochs(h) - 1);
        TUTTI_TRY(tutti_checkpoint_wait(m));
        TUTTI_TRY(read_all(m, false, o->values, &o->count));
    }
    WORKER_EXPECT(tutti_close(job) == 0);
    return TUTTI_OK;
}

/* The outcomes of all ranks, to be given to end(). */
static outcome *train(trial t)
{
    t.outcomes = mmap(NULL, RANKS * sizeof *t.outcomes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(t.outcomes != MAP_FAILED);
    tutti__test_workers(t.workers,
                        TUTTI_OPTIONS(tutti_strategy_options, .engine = t.engine, .parts = t.parts,
                                      .bucket_bytes = t.bucket),
                        work, &t);
    return t.outcomes;
}

static void end(outcome *outcomes)
{
    munmap(outcomes, RANKS * sizeof *outcomes);
}

static void check_values(const float *a, const float *b, int count, bool bits)
{
    CHECK(!bits || memcmp(a, b, (size_t)count * sizeof *a) == 0);
    for (int i = 0; i < count; i++)
        if (!(fabsf(a[i] - b[i]) <= 1e-4f * (1 + fabsf(a[i])))) {
            CHECK_NEAR(a[i], b[i], 1e-4);
            return;
        }
}

/* Test devices update everything. */
static bool shares(void)
{
    const char *device = getenv("TUTTI_DEVICE");
    return device == NULL || strncmp(device, "cpu", 3) == 0;
}

/* Shared updates against whole ones; `slots` lie in parts then. Through shared memory sums are in
 * the order of ranks either way, and of two numbers there is one sum. */
static void check_trial(trial t, int slots)
{
    t.parts = 1;
    outcome *with = train(t);
    t.parts = -1;
    outcome *without = train(t);
    bool bits = (t.workers == 2 || strcmp(t.engine, "shm") == 0) &&
                t.optimizer.global_clip_norm == 0; /* a norm is a sum of parts there */
    CHECK(without->count > 800 && without->count < MOST);
    CHECK_INT(without->in_parts, 0);
    for (int r = 0; r < t.workers; r++) {
        CHECK_INT(with[r].in_parts, shares() ? slots : 0);
        CHECK_INT(with[r].count, without->count);
        check_values(with[r].values, without->values, without->count, bits);
        CHECK(memcmp(with[r].values, with->values, (size_t)with->count * sizeof(float)) == 0);
        CHECK_NEAR(with[r].loss, without->loss, 1e-5);
    }
    if (t.reader >= 0) {
        CHECK(without[t.reader].read > 800);
        CHECK_INT(with[t.reader].read, without[t.reader].read);
        check_values(with[t.reader].alone, without[t.reader].alone, with[t.reader].read, bits);
    }
    end(with);
    end(without);
}

/* Two kernels, two biases, batch norm's two: six variables, of which some ranks have no part. */
TUTTI_TEST(shared_updates_have_the_bits_of_whole_ones)
{
    for (int workers = 2; workers <= 5; workers += workers == 3 ? 2 : 1)
        check_trial((trial){.optimizer = tutti_adam(.learning_rate = 0.02),
                            .engine = "shm",
                            .workers = workers,
                            .reader = workers - 1},
                    12);
    for (int workers = 2; workers <= 3; workers++)
        check_trial((trial){.optimizer = tutti_sgd(0.1, .momentum = 0.9, .nesterov = true),
                            .engine = "tcp",
                            .workers = workers,
                            .reader = 0},
                    6);
    check_trial((trial){.optimizer = tutti_adamw(.learning_rate = 0.01, .weight_decay = 0.1,
                                                 .clip_value = 0.01),
                        .engine = "tcp",
                        .workers = 2,
                        .reader = 1},
                12);
}

/* LAMB goes by the norms of variables; a running mean takes all that its variable has become. */
TUTTI_TEST(updates_that_look_at_all_elements_are_not_shared)
{
    trial t = {.engine = "shm", .workers = 2, .reader = -1};
    t.optimizer = tutti_lamb(.learning_rate = 0.02);
    check_trial(t, 0);
    t.optimizer = tutti_sgd(0.1, .momentum = 0.9, .ema_decay = 0.9);
    check_trial(t, 0);
}

/* Gradients are scaled by their norm, of which each has a part; steps that only gather gradients
 * update nothing. Of norms that each gradient has for itself, all are whole. */
TUTTI_TEST(shared_updates_with_clipped_and_gathered_gradients)
{
    trial t = {.engine = "shm", .workers = 3, .reader = 1};
    t.optimizer = tutti_adam(.learning_rate = 0.02, .global_clip_norm = 0.1);
    check_trial(t, 12);
    t.optimizer = tutti_adam(.learning_rate = 0.02, .clip_norm = 0.05);
    check_trial(t, 0);
    t.optimizer = tutti_adam(.learning_rate = 0.02);
    t.accumulate = 3;
    check_trial(t, 12);
    t.bucket = 1; /* each variable for itself */
    check_trial(t, 12);
}

/* What rank 0 saves in the middle, without the others, goes on on any number of processes. */
TUTTI_TEST(a_checkpoint_of_shared_updates_is_whole)
{
    char path[64], file[96];
    snprintf(path, sizeof path, "/tmp/tutti-owned-%d", (int)getpid());
    snprintf(file, sizeof file, "%s.safetensors", path);
    static const char *const engines[] = {"shm", "tcp"};
    for (size_t i = 0; i < TUTTI_COUNT(engines); i++) {
        trial all = {.optimizer = tutti_adam(.learning_rate = 0.02),
                     .engine = engines[i],
                     .workers = 2,
                     .parts = -1,
                     .reader = -1,
                     .epochs = 4};
        outcome *through = train(all);
        trial begins = all;
        begins.parts = 1;
        begins.epochs = 2;
        begins.save = path;
        begins.dies = i == 1;
        end(train(begins));
        for (int workers = 1; workers <= 3; workers++) {
            trial goes_on = all;
            goes_on.parts = 1;
            goes_on.load = path;
            goes_on.workers = workers;
            outcome *resumed = train(goes_on);
            CHECK_NEAR(resumed->loss, through->loss, 1e-5);
            check_values(resumed->values, through->values, through->count, workers == 2);
            end(resumed);
        }
        end(through);
        unlink(file);
    }
}
