/* model_strategy_test.c: fit under strategies: the losses of one device, and its bits where that is
 * asked.
 */
#include <math.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "nn/model/model_strategy.h"
#include "nn/training/examples_test.h"
#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

enum { EXAMPLES = 43, WIDTH = 6, CLASSES = 3 };

typedef struct result {
    double loss, accuracy, evaluated;
    float weights[512];
    int count;
} result;

static tutti_dataset *examples(tutti_job *job, int64_t batch)
{
    return tutti__test_examples(job, (tutti_test_examples){EXAMPLES, WIDTH, CLASSES, 5, batch});
}

/* Batch norm, dropout, a short last batch, gradients of three batches in one step. */
static result train(tutti_strategy *strategy, int accumulate, int64_t batch)
{
    result r = {0};
    tutti_job *job = tutti_open(NULL, NULL);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m =
            tutti_sequential(job, tutti_dense(12, .activation = TUTTI_RELU), tutti_batch_norm(),
                             tutti_dropout(0.2), tutti_dense(CLASSES));
        tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.02),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true),
                      .metrics = "accuracy", .accumulate = accumulate);
        const tutti_history *h = tutti_fit(m, examples(job, batch), .epochs = 3, .quiet = true);
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
            for (int64_t k = 0; k < tutti_tensor_count(value) && r.count < 512; k++)
                r.weights[r.count++] = (float)tutti_tensor_get(value, k);
            tutti_tensor_release(value);
        }
    }
    CHECK_INT(tutti_close(job), 0);
    if (strategy)
        CHECK_OK(tutti_strategy_close(strategy));
    return r;
}

static void check_near(const result *a, const result *b)
{
    CHECK_NEAR(a->loss, b->loss, 1e-4 * fabs(a->loss));
    CHECK_NEAR(a->evaluated, b->evaluated, 1e-4 * fabs(a->evaluated));
    CHECK_NEAR(a->accuracy, b->accuracy, 1e-9);
    CHECK_INT(a->count, b->count);
}

TUTTI_TEST(fit_under_strategies_equals_one_device)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    for (int accumulate = 1; accumulate <= 3; accumulate += 2) {
        result one = train(NULL, accumulate, 10);
        CHECK(one.count > 100);
        result two = train(tutti_strategy_mirrored(.devices = "cpu:0,cpu:1"), accumulate, 10);
        result three =
            train(tutti_strategy_mirrored(.devices = "cpu:0,cpu:1,far:0"), accumulate, 10);
        result central =
            train(tutti_strategy_central_storage(.devices = "cpu:0,cpu:1"), accumulate, 10);
        check_near(&one, &two);
        check_near(&one, &three);
        check_near(&one, &central);
    }
}

static void check_bits(const result *a, const result *b)
{
    CHECK_INT(a->count, b->count);
    CHECK(memcmp(a->weights, b->weights, (size_t)a->count * sizeof *a->weights) == 0);
    CHECK(memcmp(&a->loss, &b->loss, sizeof a->loss) == 0);
    CHECK(memcmp(&a->evaluated, &b->evaluated, sizeof a->loss) == 0);
}

TUTTI_TEST(deterministic_fit_has_the_same_bits_on_1_to_5_replicas)
{
    static const char *const devices[] = {"cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2",
                                          "cpu:0,cpu:1,cpu:2,cpu:3",
                                          "cpu:0,cpu:1,cpu:2,cpu:3,cpu:4"};
    CHECK_OK(tutti__param_set("CPU_DEVICES", "5"));
    for (int accumulate = 1; accumulate <= 3; accumulate += 2) {
        result one = train(tutti_strategy_one_device(.devices = "cpu:0", .deterministic = true),
                           accumulate, 10);
        for (size_t i = 0; i < 4; i++) {
            result many =
                train(tutti_strategy_mirrored(.devices = devices[i], .deterministic = true),
                      accumulate, 10);
            check_bits(&one, &many);
        }
    }
}

/* What is left out of a step's gradients is added to the next one's: the training arrives all the
 * same. */
TUTTI_TEST(compressed_gradients_train)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    result plain = train(NULL, 1, 10);
    static const char *const names[] = {"topk:0.25", "powersgd:2"};
    for (size_t i = 0; i < 2; i++) {
        result r = train(tutti_strategy_mirrored(.devices = "cpu:0,cpu:1", .compression = names[i]),
                         1, 10);
        CHECK(isfinite(r.loss));
        CHECK(r.loss < plain.loss + 0.1);
        CHECK(memcmp(r.weights, plain.weights, sizeof plain.weights) != 0);
    }
    tutti_strategy *wrong = tutti_strategy_mirrored(.compression = "topk:none");
    CHECK(tutti_strategy_check(wrong) != TUTTI_OK);
    tutti_strategy_close(wrong);
}

/* Two convolutions with batch norm and dropout; regularizers are what the first replica adds. */
static tutti_status convolve(tutti_strategy *strategy, double *ret_loss)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x, *y;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 4, (int64_t[]){21, 9, 7, 3}, &x));
    TUTTI_TRY(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){21}, &y));
    for (int64_t i = 0; i < tutti_tensor_count(x); i++)
        tutti_tensor_set(x, i, sin((double)(i * i % 101)));
    for (int64_t i = 0; i < 21; i++)
        tutti_tensor_set_int(y, i, i * 5 % CLASSES);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = tutti_sequential(
            job,
            tutti_conv2d(8, 3, .no_bias = true, .padding = "same", .kernel_regularizer = "l2(0.1)"),
            tutti_batch_norm(), tutti_relu_layer(), tutti_dropout(0.3), tutti_max_pool2d(2),
            tutti_conv2d(6, 3, .activation = "gelu"), tutti_batch_norm(),
            tutti_spatial_dropout2d(0.2), tutti_global_average_pool2d(),
            tutti_dense(CLASSES, .bias_regularizer = "l1(0.1)"));
        tutti_compile(m, .optimizer = tutti_sgd(0.1),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        const tutti_history *h = tutti_fit(
            m, tutti_batch(tutti_from_tensor_slices(job, x, y), 10), .epochs = 2,
            .validation = tutti_batch(tutti_from_tensor_slices(job, x, y), 4), .quiet = true);
        *ret_loss = h ? tutti_history_get(h, "val_loss", -1) : NAN;
    }
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_status status = tutti_job_check(job);
    tutti_close(job);
    return status;
}

/* Both in the worker: a process that has had threads does not fork well. */
static tutti_status convolve_twice(tutti_strategy *strategy, void *context)
{
    double loss, expected;
    (void)context;
    tutti_strategy *one = tutti_strategy_one_device(.devices = "cpu:0");
    TUTTI_TRY(convolve(one, &expected));
    TUTTI_TRY(tutti_strategy_close(one));
    TUTTI_TRY(convolve(strategy, &loss));
    WORKER_NEAR(loss, expected);
    return TUTTI_OK;
}

TUTTI_TEST_ALONE(workers_of_two_devices_train_as_one_device)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    tutti__test_workers(2, TUTTI_OPTIONS(tutti_strategy_options, .devices = "cpu:0,cpu:1"),
                        convolve_twice, NULL);
}

/* The second process takes larger steps: from the start, or after some of them. */
static void go_faster(void *context, tutti_event *event)
{
    if (event->step == *(const int64_t *)context)
        tutti_set_learning_rate(event->model, 0.5);
}

static tutti_status at_another_rate(tutti_strategy *strategy, void *context)
{
    int64_t *from = context;
    tutti_job *job = tutti_open(NULL, NULL);
    bool odd = tutti_strategy_rank(strategy) == 1;
    int64_t never = -1;
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = tutti_sequential(job, tutti_dense(CLASSES));
        tutti_compile(
            m,
            .optimizer =
                odd && *from == 0
                    ? tutti_sgd(0.1, .schedule = tutti_step_decay(.learning_rate = 0.1, .every = 3))
                    : tutti_sgd(0.1),
            .loss = tutti_sparse_cross_entropy(.from_logits = true));
        tutti_fit(m, examples(job, 10), .epochs = 8, .quiet = true,
                  .callbacks = TUTTI_LIST(tutti_lambda_callback(.context = odd ? from : &never,
                                                                .batch_end = go_faster)));
    }
    WORKER_EXPECT(tutti_job_check(job) != TUTTI_OK);
    bool told = strstr(tutti_error_message(), *from == 0 ? "'optimizer sgd, learning rate 0.1, step"
                                                         : "rank 1 has a learning rate of 0.5 in "
                                                           "step 17, rank 0 of 0.1") != NULL;
    tutti_close(job);
    WORKER_EXPECT(told);
    return TUTTI_OK;
}

TUTTI_TEST_ALONE(processes_at_different_rates_are_found_out)
{
    tutti__test_workers(2, NULL, at_another_rate, &(int64_t){0});
    tutti__test_workers(2, NULL, at_another_rate, &(int64_t){5});
}

/* The second process alone asks to stop: in a step, or at the end of an epoch. */
typedef struct stopping {
    int64_t batch, step;
    int epoch;
    int64_t ends; /* the step after which all end */
} stopping;

static void stop_after_step(void *context, tutti_event *event)
{
    if (event->step == ((const stopping *)context)->step)
        tutti_stop_training(event->model);
}

static void stop_after_epoch(void *context, tutti_event *event)
{
    if (event->epoch == ((const stopping *)context)->epoch)
        tutti_stop_training(event->model);
}

static tutti_status stop_on_one(tutti_strategy *strategy, void *context)
{
    const stopping *s = context;
    tutti_job *job = tutti_open(NULL, NULL);
    stopping never = {.step = -1, .epoch = -1};
    const void *mine = tutti_strategy_rank(strategy) == 1 ? (const void *)s : &never;
    int64_t steps = 0;
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = tutti_sequential(job, tutti_dense(CLASSES));
        tutti_compile(m, .optimizer = tutti_sgd(0.1),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        tutti_fit(m, examples(job, s->batch), .epochs = 30, .quiet = true,
                  .callbacks = TUTTI_LIST(tutti_lambda_callback(.context = (void *)(uintptr_t)mine,
                                                                .batch_end = stop_after_step,
                                                                .epoch_end = stop_after_epoch)));
        steps = tutti_model_steps(m);
    }
    WORKER_EXPECT(tutti_job_check(job) == TUTTI_OK);
    tutti_close(job);
    if (steps != s->ends)
        return tutti_fail(TUTTI_INTERNAL, "ended after step %lld", (long long)steps);
    return TUTTI_OK;
}

TUTTI_TEST_ALONE(one_process_that_stops_ends_the_training_of_all_after_the_same_step)
{
    tutti__test_workers(2, NULL, stop_on_one,
                        &(stopping){.batch = 2, .step = 5, .epoch = -1, .ends = 16});
    tutti__test_workers(3, NULL, stop_on_one,
                        &(stopping){.batch = 10, .step = -1, .epoch = 0, .ends = 5});
}

/* The second process's rows hold no number, early or late in the epoch, or an infinite target, of
 * which the loss is no number a step later; or the first step is so large that none is left. */
typedef enum cause { EARLY, LATE, INFINITE, LARGE_STEP } cause;

static tutti_status diverge(tutti_strategy *strategy, void *context)
{
    cause why = *(const cause *)context;
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x, *y;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){40, WIDTH}, &x));
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){40, 1}, &y));
    for (int64_t i = 0; i < 40 * WIDTH; i++)
        tutti_tensor_set(x, i, cos((double)i));
    if (why == INFINITE)
        tutti_tensor_set(y, 27, INFINITY);
    else if (why != LARGE_STEP) /* third batch, second process, row 2; or the last of 20 batches */
        tutti_tensor_set(x, (why == EARLY ? 27 : 39) * WIDTH + 2, NAN);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = tutti_sequential(job, tutti_dense(1));
        tutti_compile(m, .optimizer = tutti_sgd(why == LARGE_STEP ? 1e30 : 0.01),
                      .loss = tutti_mse());
        tutti_fit(m, tutti_batch(tutti_from_tensor_slices(job, x, y), why == LATE ? 2 : 10),
                  .epochs = 9, .quiet = true);
    }
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    WORKER_EXPECT(tutti_job_check(job) == TUTTI_INVALID);
    const char *said = tutti_error_message();
    static const char *const texts[] = {
        [EARLY] = "rank 1's examples are not all finite (component 0, row 2",
        [INFINITE] =
            "step 3: the loss is no number: rank 1's examples are not all finite (component 1",
        [LATE] = "step 20: the loss is no number",
        [LARGE_STEP] = "the cause in this step: training has diverged"};
    bool told = strstr(said, texts[why]) != NULL;
    tutti_close(job);
    WORKER_EXPECT(told);
    return TUTTI_OK;
}

TUTTI_TEST_ALONE(processes_whose_loss_is_no_number_end_and_say_whose_data_it_was)
{
    for (cause why = EARLY; why <= LARGE_STEP; why++)
        tutti__test_workers(2, NULL, diverge, &why);
}

/* TensorFlow's way: the model is made or compiled within the strategy, and trained behind it. */
typedef enum where { MADE, COMPILED, COMPILED_AFTER_BUILD, FUNCTIONAL } where;

static tutti_model *make_model(tutti_job *job, where at)
{
    if (at != FUNCTIONAL)
        return tutti_sequential(job, tutti_dense(CLASSES));
    tutti_model *m = tutti_functional(job);
    tutti_output(m, "y", tutti_call(tutti_dense(CLASSES), tutti_input(m, "x", TUTTI_F32, WIDTH)));
    return m;
}

static void compile_model(tutti_model *m)
{
    tutti_compile(m, .optimizer = tutti_sgd(0.1),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
}

TUTTI_TEST(models_keep_the_strategy_that_they_were_made_or_compiled_in)
{
    for (where at = MADE; at <= FUNCTIONAL; at++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_strategy *two = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
        bool outside = at == COMPILED || at == COMPILED_AFTER_BUILD;
        tutti_model *m = outside ? make_model(job, at) : NULL;
        if (at == COMPILED_AFTER_BUILD)
            tutti_build(m, TUTTI_F32, WIDTH);
        TUTTI_WITH_STRATEGY(two)
        {
            m = m ? m : make_model(job, at);
            if (at != MADE)
                compile_model(m);
        }
        if (at == MADE)
            compile_model(m);
        CHECK_OK(tutti_strategy_close(two)); /* the model has it still */
        CHECK(tutti_fit(m, examples(job, 8), .epochs = 1, .quiet = true) != NULL);
        CHECK_INT(tutti_strategy_replicas(tutti__model_strategy(m)), 2);
        CHECK_INT(tutti_close(job), 0);
    }
}

TUTTI_TEST(a_model_made_within_a_strategy_takes_no_other)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_strategy *two = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
    tutti_strategy *central = tutti_strategy_central_storage(.devices = "cpu:0,cpu:1");
    tutti_model *m = NULL;
    TUTTI_WITH_STRATEGY(two)
    m = make_model(job, MADE);
    compile_model(m);
    TUTTI_WITH_STRATEGY(central)
    CHECK(tutti_fit(m, examples(job, 8), .epochs = 1, .quiet = true) == NULL);
    CHECK_CONTAINS(tutti_error_message(), "within strategy mirrored and keeps it");
    CHECK_INT(tutti_close(job), 1);
    CHECK_OK(tutti_strategy_close(two));
    CHECK_OK(tutti_strategy_close(central));
}
