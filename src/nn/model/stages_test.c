/* stages_test.c: fit under pipelines: models in stages, cut by the user or by themselves, learn
 * what they learn on one device. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/params.h"
#include "base/test.h"
#include "nn/model/model_strategy.h"
#include "nn/training/examples_test.h"
#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

enum { EXAMPLES = 43, WIDTH = 6, CLASSES = 3 };

typedef enum variant { PLAIN, MARKED, NORMED, SKIPPING } variant;

typedef struct result {
    double loss, accuracy, evaluated;
    float weights[1024], answers[64];
    int count;
} result;

static tutti_dataset *examples(tutti_job *job, int64_t batch)
{
    return tutti__test_examples(job, (tutti_test_examples){EXAMPLES, WIDTH, CLASSES, 5, batch});
}

static tutti_model *make(tutti_job *job, variant v)
{
    if (v == MARKED)
        return tutti_sequential(
            job, tutti_dense(12, .activation = TUTTI_RELU), tutti_dropout(0.2),
            tutti_dense(11, .activation = TUTTI_TANH, .stage = 1), tutti_layer_norm(.stage = 2),
            tutti_dense(9, .activation = TUTTI_RELU, .stage = 2), tutti_dense(CLASSES, .stage = 3));
    if (v == NORMED)
        return tutti_sequential(job, tutti_dense(12, .activation = TUTTI_RELU), tutti_batch_norm(),
                                tutti_dense(12, .activation = TUTTI_RELU), tutti_batch_norm(),
                                tutti_dense(CLASSES));
    if (v == SKIPPING) {
        tutti_model *m = tutti_functional(job);
        tutti_sym x = tutti_input(m, "x", TUTTI_F32, WIDTH);
        tutti_sym a = tutti_call(tutti_dense(8, .activation = TUTTI_RELU), x);
        tutti_sym b = tutti_call(tutti_dense(8, .activation = TUTTI_RELU), a);
        tutti_sym c = tutti_call(tutti_dense(8, .activation = TUTTI_TANH), b);
        tutti_sym d =
            tutti_call(tutti_dense(8, .activation = TUTTI_RELU, .remat = true), tutti_add(a, c));
        tutti_output(m, "y", tutti_call(tutti_dense(CLASSES), tutti_add(d, b)));
        return m;
    }
    return tutti_sequential(job, tutti_dense(12, .activation = TUTTI_RELU), tutti_dropout(0.2),
                            tutti_dense(13, .activation = TUTTI_RELU), tutti_dense(7),
                            tutti_dense(CLASSES));
}

static result train(tutti_strategy *strategy, variant v, int accumulate, double clip)
{
    result r = {0};
    tutti_job *job = tutti_open(NULL, NULL);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = make(job, v);
        tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.02, .global_clip_norm = clip),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true),
                      .metrics = "accuracy", .accumulate = accumulate);
        const tutti_history *h = tutti_fit(m, examples(job, 10), .epochs = 3, .quiet = true);
        CHECK_OK(tutti_job_check(job));
        r.loss = tutti_history_get(h, "loss", 2);
        r.accuracy = tutti_history_get(h, "accuracy", 2);
        tutti_logs logs;
        CHECK_OK(tutti_evaluate(m, examples(job, 7), &logs));
        r.evaluated = tutti_logs_get(&logs, "loss");
        tutti_weight_info info;
        for (int i = 0; tutti_weight_at(m, i, &info) == TUTTI_OK; i++) {
            tutti_tensor *value;
            CHECK_OK(tutti_get_weight(m, info.name, &value));
            for (int64_t k = 0; k < tutti_tensor_count(value) && r.count < 1024; k++)
                r.weights[r.count++] = (float)tutti_tensor_get(value, k);
            tutti_tensor_release(value);
        }
    }
    CHECK_INT(tutti_close(job), 0);
    if (strategy)
        CHECK_OK(tutti_strategy_close(strategy));
    return r;
}

static void check_near(const result *a, const result *b, double tolerance)
{
    CHECK_NEAR(a->loss, b->loss, tolerance * fabs(a->loss));
    CHECK_NEAR(a->evaluated, b->evaluated, tolerance * fabs(a->evaluated));
    CHECK_INT(a->count, b->count);
    for (int i = 0; i < a->count; i++)
        CHECK_NEAR(a->weights[i], b->weights[i], 30 * tolerance);
}

/* Weights and slots are on their stage's device, and on no other. */
TUTTI_TEST(weights_live_on_the_device_of_their_stage)
{
    static const char *const names[] = {"dense/kernel", "dense_1/kernel", "layer_norm/gamma",
                                        "dense_2/bias", "dense_3/kernel"};
    static const char *const devices[] = {"cpu:0", "cpu:1", "cpu:2", "cpu:2", "cpu:3"};
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_strategy *strategy = tutti_strategy_pipeline(.stages = 4, .micro_batches = 4);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = make(job, MARKED);
        tutti_compile(m, .optimizer = tutti_adam(),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        tutti_fit(m, examples(job, 10), .epochs = 1, .quiet = true);
        CHECK_OK(tutti_job_check(job));
        tutti_state *state = tutti__engine_state(m->engine);
        for (size_t i = 0; i < TUTTI_COUNT(names); i++) {
            const tutti_state_variable *v = tutti__state_find(state, names[i]);
            CHECK(v && v->pieces.count == 1);
            CHECK_STR(v->pieces.data[0]->device, devices[i]);
        }
        const tutti_state_variable *v;
        for (size_t i = 0; (v = tutti__state_at(state, i)) != NULL; i++)
            if (strncmp(v->name, "dense_3/kernel", 14) == 0 && v->pieces.count > 0)
                CHECK_STR(v->pieces.data[0]->device, "cpu:3");
    }
    CHECK_INT(tutti_close(job), 0);
    CHECK_OK(tutti_strategy_close(strategy));
}

TUTTI_TEST(fit_under_pipelines_equals_one_device)
{
    static const variant variants[] = {PLAIN, MARKED, SKIPPING};
    for (size_t v = 0; v < TUTTI_COUNT(variants); v++)
        for (int accumulate = 1; accumulate <= 2; accumulate++) {
            result one = train(NULL, variants[v], accumulate, 0.7);
            CHECK(one.count > 100);
            result pipe = train(tutti_strategy_pipeline(.stages = 4, .micro_batches = 4),
                                variants[v], accumulate, 0.7);
            check_near(&one, &pipe, 1e-4);
            result zero = train(
                tutti_strategy_pipeline(.stages = 4, .micro_batches = 5, .schedule = "zero_bubble"),
                variants[v], accumulate, 0.7);
            check_near(&one, &zero, 1e-4);
        }
}

TUTTI_TEST(deterministic_fit_under_pipelines_has_the_bits_of_one_device)
{
    result one =
        train(tutti_strategy_one_device(.devices = "cpu:0", .deterministic = true), PLAIN, 2, 0.7);
    for (int micro = 1; micro <= 8; micro *= 2) {
        result pipe = train(
            tutti_strategy_pipeline(.stages = 3, .micro_batches = micro, .deterministic = true),
            PLAIN, 2, 0.7);
        CHECK_INT(one.count, pipe.count);
        CHECK(memcmp(one.weights, pipe.weights, (size_t)one.count * sizeof *one.weights) == 0);
        CHECK(memcmp(&one.loss, &pipe.loss, sizeof one.loss) == 0);
    }
}

/* Batch norm takes the statistics of a micro-batch: with one micro-batch those of the batch, with
 * several it learns, and something else. */
TUTTI_TEST(batch_norm_under_pipelines_is_of_micro_batches)
{
    result one = train(NULL, NORMED, 1, 0);
    result whole = train(tutti_strategy_pipeline(.stages = 2, .micro_batches = 1), NORMED, 1, 0);
    check_near(&one, &whole, 1e-4);
    result parts = train(tutti_strategy_pipeline(.stages = 2, .micro_batches = 2), NORMED, 1, 0);
    CHECK(isfinite(parts.loss) && parts.loss < 1.2 && isfinite(parts.evaluated));
    CHECK(fabs(parts.loss - one.loss) < 0.5);
}

TUTTI_TEST(models_are_cut_into_stages_by_their_layers)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_strategy *strategy = tutti_strategy_pipeline(.stages = 3, .micro_batches = 2);
    TUTTI_WITH_STRATEGY(strategy)
    {
        /* 10 x 10 twice is as much as 10 x 20; the cut is before the third and the fourth layer. */
        tutti_model *m = tutti_sequential(job, tutti_dense(10), tutti_dense(10), tutti_dense(20),
                                          tutti_dense(10));
        tutti_compile(m, .optimizer = tutti_sgd(0.1), .loss = tutti_mse());
        CHECK_OK(tutti_build(m, TUTTI_F32, 10));
        CHECK_OK(tutti__model_find_stages(m, strategy));
        CHECK(m->stage_of != NULL);
        int stages[4], count = 0;
        for (size_t i = 0; i < m->stage_nodes; i++) {
            const tutti_node *node = m->blueprint->nodes.data[i];
            if (node->op == tutti__layer_op && count < 4)
                stages[count++] = m->stage_of[i];
        }
        CHECK_INT(count, 4);
        CHECK_INT(stages[0], 0);
        CHECK_INT(stages[1], 0);
        CHECK_INT(stages[2], 1);
        CHECK_INT(stages[3], 2);
    }
    CHECK_INT(tutti_close(job), 0);
    CHECK_OK(tutti_strategy_close(strategy));
}

TUTTI_TEST(more_stages_than_layers_are_refused)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_strategy *strategy = tutti_strategy_pipeline(.stages = 4, .micro_batches = 2);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = tutti_sequential(job, tutti_dense(10), tutti_dense(CLASSES));
        tutti_compile(m, .optimizer = tutti_sgd(0.1),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        tutti_fit(m, examples(job, 10), .epochs = 1, .quiet = true);
        CHECK(tutti_job_check(job) != TUTTI_OK);
        CHECK_CONTAINS(tutti_error_message(), "2 layers, which cannot be cut into 4 stages");
    }
    tutti_close(job);
    tutti_strategy_close(strategy);
}

TUTTI_TEST(cuts_that_fit_no_memory_are_refused)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_strategy *strategy =
        tutti_strategy_pipeline(.devices = "cpu:0=4KiB,cpu:1=4KiB", .micro_batches = 2);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m =
            tutti_sequential(job, tutti_dense(64), tutti_dense(64), tutti_dense(CLASSES));
        tutti_compile(m, .optimizer = tutti_sgd(0.1),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        tutti_fit(m, examples(job, 10), .epochs = 1, .quiet = true);
        CHECK(tutti_job_check(job) != TUTTI_OK);
        CHECK_CONTAINS(tutti_error_message(), "no cut into 2 stages fits the memory");
    }
    tutti_close(job);
    tutti_strategy_close(strategy);
}

/* Two columns on devices of their own, as AlexNet's; the user's devices count, not the stages'. */
static double columns(tutti_strategy *strategy)
{
    double loss = 0;
    tutti_job *job = tutti_open(NULL, NULL);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = tutti_functional(job);
        tutti_sym x = tutti_input(m, "x", TUTTI_F32, WIDTH), column[2];
        static const char *const devices[] = {"cpu:0", "cpu:1"};
        for (int c = 0; c < 2; c++)
            column[c] =
                tutti_call(tutti_dense(8, .activation = TUTTI_RELU, .device = devices[c]), x);
        for (int c = 0; c < 2; c++)
            TUTTI_WITH_DEVICE(tutti_sym_graph(x), devices[c])
                column[c] = tutti_call(tutti_dense(8, .activation = TUTTI_RELU), column[c]);
        tutti_output(m, "y",
                     tutti_call(tutti_dense(CLASSES, .device = "cpu:1"),
                                tutti_call(tutti_concatenate_layer(), column[0], column[1])));
        tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.02),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        const tutti_history *h = tutti_fit(m, examples(job, 10), .epochs = 2, .quiet = true);
        CHECK_OK(tutti_job_check(job));
        loss = tutti_history_get(h, "loss", 1);
        if (strategy) {
            const tutti_state_variable *second =
                tutti__state_find(tutti__engine_state(m->engine), "dense_1/kernel");
            CHECK(second && second->pieces.count == 1);
            CHECK_STR(second->pieces.data[0]->device, "cpu:1");
        }
    }
    CHECK_INT(tutti_close(job), 0);
    if (strategy)
        CHECK_OK(tutti_strategy_close(strategy));
    return loss;
}

TUTTI_TEST(layers_stand_on_the_devices_that_are_named)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    double one = columns(NULL);
    double two = columns(tutti_strategy_pipeline(.devices = "cpu:0,cpu:1", .micro_batches = 1));
    double four = columns(tutti_strategy_pipeline(.devices = "cpu:0,cpu:1", .micro_batches = 4));
    CHECK_NEAR(one, two, 1e-5);
    CHECK_NEAR(one, four, 1e-5);
}

/* ---- stages in several processes ---- */

static tutti_status fit_apart(tutti_strategy *strategy, void *context)
{
    const result *one = context;
    char path[64];
    snprintf(path, sizeof path, "/tmp/stages_test_%d", (int)getppid());
    tutti_job *job = tutti_open(NULL, NULL);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = make(job, MARKED);
        tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.02, .global_clip_norm = 0.7),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true),
                      .metrics = "accuracy");
        const tutti_history *h = tutti_fit(m, examples(job, 10), .epochs = 3, .quiet = true);
        TUTTI_TRY(tutti_job_check(job));
        WORKER_EXPECT(fabs(tutti_history_get(h, "loss", 2) - one->loss) < 1e-4 * fabs(one->loss));
        WORKER_EXPECT(tutti_history_get(h, "accuracy", 2) == one->accuracy);
        tutti_logs logs;
        TUTTI_TRY(tutti_evaluate(m, examples(job, 7), &logs));
        WORKER_EXPECT(fabs(tutti_logs_get(&logs, "loss") - one->evaluated) < 1e-4);
        TUTTI_TRY(tutti_save_model(m, path));
    }
    WORKER_EXPECT(tutti_close(job) == 0);
    return TUTTI_OK;
}

/* What is saved by several processes is read by one. */
TUTTI_TEST_ALONE(fit_under_pipelines_of_several_processes)
{
    char path[64], file[80];
    result one = train(NULL, MARKED, 1, 0.7);
    tutti__test_workers(
        4, TUTTI_OPTIONS(tutti_strategy_options, .devices = "cpu:0", .micro_batches = 4), fit_apart,
        &one);
    snprintf(path, sizeof path, "/tmp/stages_test_%d", (int)getpid());
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_load_model(job, path);
    tutti_logs logs;
    CHECK_OK(tutti_job_check(job));
    tutti_compile(m, .loss = tutti_sparse_cross_entropy(.from_logits = true));
    CHECK_OK(tutti_evaluate(m, examples(job, 7), &logs));
    CHECK_NEAR(tutti_logs_get(&logs, "loss"), one.evaluated, 1e-4);
    CHECK_INT(tutti_close(job), 0);
    static const char *const ends[] = {"json", "safetensors"};
    for (int i = 0; i < 2; i++) {
        snprintf(file, sizeof file, "%s.%s", path, ends[i]);
        remove(file);
    }
}
