/* parts_test.c: devices of one memory keep a variable once and each update a part of it: the bits
 * are those of copies that are each updated whole. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/params.h"
#include "base/test.h"
#include "nn/model/model.h"
#include "nn/training/examples_test.h"
#include "tutti/tutti.h"

enum { EXAMPLES = 43, WIDTH = 30, HIDDEN = 24, CLASSES = 5, MOST = 16384 };

typedef struct outcome {
    double loss;
    int shared; /* variables whose copies are one tensor */
    int count;
    float values[MOST]; /* of all variables, slots too */
} outcome;

typedef struct trial {
    tutti_optimizer optimizer;
    int accumulate;
    bool deterministic;
    const char *constraint, *regularizer;
    const char *load, *save; /* checkpoints */
    int epochs;
} trial;

static tutti_dataset *examples(tutti_job *job)
{
    /* the last batch has 3 */
    return tutti__test_examples(job, (tutti_test_examples){EXAMPLES, WIDTH, CLASSES, 3, 10});
}

static int by_name(const void *a, const void *b)
{
    const tutti_state_variable *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* Copies are equal whether they are one tensor or not. */
static void look_at(tutti_state *state, tutti_state_variable *v, outcome *o)
{
    tutti_tensor *value;
    bool one = v->pieces.count > 1;
    for (size_t k = 0; k < v->pieces.count; k++) {
        const tutti_piece *piece = v->pieces.data[k], *first = v->pieces.data[0];
        CHECK(piece->value != NULL);
        one = one && piece->value == first->value;
        CHECK(memcmp(tutti_tensor_data(piece->value), tutti_tensor_data(first->value),
                     (size_t)tutti_type_count(&v->type) * sizeof(float)) == 0);
    }
    o->shared += one;
    CHECK_OK(tutti__variable_get(state, v, &value));
    for (int64_t k = 0; k < tutti_tensor_count(value) && o->count < MOST; k++)
        o->values[o->count++] = (float)tutti_tensor_get(value, k);
    tutti_tensor_release(value);
}

static void look(const tutti_model *m, outcome *o)
{
    tutti_state *state = tutti__engine_state(m->engine);
    tutti_state_variable *all[64];
    size_t count = 0;
    for (size_t i = 0; tutti__state_at(state, i) && count < 64; i++) {
        tutti_state_variable *v = tutti__state_at(state, i);
        if (v->type.dtype == TUTTI_F32 && !v->partial && !v->averaged && v->pieces.count > 0)
            all[count++] = v;
    }
    qsort(all, count, sizeof *all, by_name);
    for (size_t i = 0; i < count; i++)
        look_at(state, all[i], o);
}

static outcome *train(const trial *t, const char *devices, int parts)
{
    outcome *o = calloc(1, sizeof *o);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_strategy *strategy = tutti_strategy_mirrored(.devices = devices, .parts = parts,
                                                       .deterministic = t->deterministic);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = tutti_sequential(job,
                                          tutti_dense(HIDDEN, .activation = TUTTI_RELU,
                                                      .kernel_constraint = t->constraint,
                                                      .kernel_regularizer = t->regularizer),
                                          tutti_batch_norm(), tutti_dense(CLASSES));
        tutti_compile(m, .optimizer = t->optimizer,
                      .loss = tutti_sparse_cross_entropy(.from_logits = true),
                      .accumulate = t->accumulate);
        tutti_build(m, TUTTI_F32, WIDTH);
        if (t->load)
            CHECK_OK(tutti_restore_checkpoint(m, t->load));
        const tutti_history *h =
            tutti_fit(m, examples(job), .epochs = t->epochs ? t->epochs : 3, .quiet = true);
        CHECK_OK(tutti_job_check(job));
        o->loss = tutti_history_get(h, "loss", tutti_history_epochs(h) - 1);
        if (t->save)
            CHECK_OK(tutti_save_checkpoint(m, t->save));
        look(m, o);
    }
    CHECK_INT(tutti_close(job), 0);
    CHECK_OK(tutti_strategy_close(strategy));
    return o;
}

/* To the bits, or but for rounding. Ends both. */
static void check_same(outcome *a, outcome *b, bool bits)
{
    CHECK(a->count > 800 && a->count < MOST);
    CHECK_INT(a->count, b->count);
    CHECK(!bits || memcmp(a->values, b->values, (size_t)a->count * sizeof *a->values) == 0);
    CHECK(!bits || memcmp(&a->loss, &b->loss, sizeof a->loss) == 0);
    for (int i = 0; i < a->count && i < b->count; i++)
        if (!(fabsf(a->values[i] - b->values[i]) <= 1e-4f * (1 + fabsf(a->values[i])))) {
            CHECK_NEAR(a->values[i], b->values[i], 1e-4);
            break;
        }
    CHECK_NEAR(a->loss, b->loss, 1e-5);
    free(a);
    free(b);
}

static const char *const devices[] = {"cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2"};

/* `shared`: variables that are kept once then; of 2 devices and 64 elements to a part. */
static void check_trial(trial t, int shared)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    for (size_t i = 0; i < TUTTI_COUNT(devices); i++) {
        outcome *with = train(&t, devices[i], 1), *without = train(&t, devices[i], -1);
        CHECK_INT(without->shared, 0);
        if (i == 0)
            CHECK_INT(with->shared, shared);
        /* the norm of all gradients is a sum of parts */
        check_same(with, without, t.optimizer.global_clip_norm == 0);
    }
}

/* Two kernels of 720 and 120 elements, of which 128 are enough for 2 devices: the first has its
 * slots with it. */
TUTTI_TEST(parts_of_an_update_have_the_bits_of_the_whole)
{
    check_trial((trial){.optimizer = tutti_adam(.learning_rate = 0.02)}, 3);
    check_trial((trial){.optimizer = tutti_sgd(0.1, .momentum = 0.9, .nesterov = true)}, 2);
    check_trial((trial){.optimizer = tutti_adamw(.learning_rate = 0.01, .weight_decay = 0.1)}, 3);
    check_trial((trial){.optimizer = tutti_adam(.learning_rate = 0.02), .deterministic = true}, 3);
}

TUTTI_TEST(parts_with_accumulated_and_clipped_gradients)
{
    check_trial((trial){.optimizer = tutti_adam(.learning_rate = 0.02), .accumulate = 3}, 3);
    check_trial((trial){.optimizer = tutti_adam(.learning_rate = 0.02, .clip_value = 0.01)}, 3);
    check_trial((trial){.optimizer = tutti_adam(.learning_rate = 0.02, .global_clip_norm = 0.1)},
                3);
    check_trial((trial){.optimizer = tutti_sgd(0.1), .regularizer = "l2(0.01)"}, 1);
}

/* The running mean takes what its own part has become. */
TUTTI_TEST(parts_of_running_means)
{
    check_trial((trial){.optimizer = tutti_sgd(0.1, .momentum = 0.9, .ema_decay = 0.9)}, 3);
}

/* Norms are of all elements; a constraint reads what the update gives. */
TUTTI_TEST(parts_of_updates_that_look_at_all_elements_are_left_alone)
{
    check_trial((trial){.optimizer = tutti_lamb(.learning_rate = 0.02)}, 0);
    check_trial((trial){.optimizer = tutti_lars(.learning_rate = 0.02)}, 0);
    check_trial(
        (trial){.optimizer = tutti_adam(.learning_rate = 0.02), .constraint = "max_norm(1)"}, 0);
}

/* A checkpoint says nothing of who keeps what, and every copy takes it. */
TUTTI_TEST(parts_resume_on_any_number_of_devices)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    char path[64];
    snprintf(path, sizeof path, "/tmp/tutti-parts-%d", (int)getpid());
    trial all = {
        .optimizer = tutti_adam(.learning_rate = 0.02), .deterministic = true, .epochs = 4};
    trial begins = all, goes_on = all;
    begins.save = goes_on.load = path;
    begins.epochs = 2;
    static const char *const from[] = {"cpu:0,cpu:1", "cpu:0", "cpu:0,cpu:1,cpu:2"};
    static const char *const to[] = {"cpu:0,cpu:1,cpu:2", "cpu:0,cpu:1", "cpu:0"};
    for (size_t i = 0; i < TUTTI_COUNT(from); i++) {
        outcome *through = train(&all, from[i], -1);
        free(train(&begins, from[i], 1));
        outcome *resumed = train(&goes_on, to[i], 1);
        check_same(through, resumed, true);
    }
    char file[96];
    snprintf(file, sizeof file, "%s.safetensors", path);
    unlink(file);
}
