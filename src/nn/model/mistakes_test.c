/* mistakes_test.c: what a user gets wrong is said, with the name of what is wrong. */
#include "tutti/tutti.h"

#include <math.h>
#include <stdlib.h>

#include "base/params.h"
#include "base/test.h"

static tutti_dataset *examples(tutti_job *job)
{
    tutti_tensor *x, *y;
    int64_t dims[] = {8, 4};
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, dims, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, dims, &y));
    for (int64_t i = 0; i < 8; i++)
        tutti_tensor_set_int(y, i, i % 3);
    tutti_dataset *data = tutti_batch(tutti_from_tensor_slices(job, x, y), 4);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return data;
}

static tutti_sym nothing(tutti_layer_call *call)
{
    (void)call;
    return TUTTI_NO_SYM;
}
static const tutti_layer_kind empty = {.struct_size = sizeof(tutti_layer_kind),
                                       .name = "my.empty",
                                       .settings_size = sizeof(tutti_layer_settings),
                                       .call = nothing};
static tutti_sym no_loss(const tutti_loss *loss, tutti_sym truth, tutti_sym guess)
{
    (void)loss, (void)truth, (void)guess;
    return TUTTI_NO_SYM;
}

/* The job's error after a fit of a model with this layer, optimizer and loss. */
static void check_says(tutti_layer *layer, tutti_optimizer optimizer, tutti_loss loss,
                       int accumulate, int epochs, const char *text)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_sequential(job, layer);
    tutti_compile(m, .optimizer = optimizer, .loss = loss, .accumulate = accumulate);
    CHECK(tutti_fit(m, examples(job), .epochs = epochs, .quiet = true) == NULL);
    CHECK(tutti_job_check(job) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), text);
    CHECK_INT(tutti_close(job), 1);
}

TUTTI_TEST(mistakes_in_training_are_said)
{
    tutti_loss loss = tutti_sparse_cross_entropy(.from_logits = true), smooth = loss;
    smooth.label_smoothing = 2;
    check_says(tutti_layer_custom(&empty, NULL), tutti_adam(), loss, 0, 1,
               "my.empty 'my.empty': its call gave no output");
    check_says(tutti_conv1d(3, 3, .strides = -1), tutti_adam(), loss, 0, 1,
               "conv1d 'conv1d': strides is -1");
    check_says(tutti_dense(3), tutti_adam(.learning_rate = -1), loss, 0, 1,
               "adam: -1 is no learning rate");
    check_says(tutti_dense(3), tutti_sgd(1e35), loss, 0, 1,
               "sgd: 1e+35 is no learning rate; it is from 0 to 1e+30");
    check_says(tutti_dense(3), tutti_sgd(NAN), loss, 0, 1, "is no learning rate");
    check_says(tutti_dense(3), tutti_adam(), smooth, 0, 1, "label_smoothing is from 0 to 1, not 2");
    check_says(tutti_dense(3), tutti_adam(), tutti_custom_loss(no_loss, NULL, "mine"), 0, 1,
               "loss mine: its function gave nothing");
    check_says(tutti_dense(3), tutti_adam(), loss, -2, 1, "accumulate is -2");
    check_says(tutti_dense(3), tutti_adam(), loss, 0, -4, "epochs -4");
}

TUTTI_TEST(a_model_too_large_for_memory_fails_and_nothing_else)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* the memory of test devices is not real */
    check_says(tutti_dense(INT64_C(1000000000000)), tutti_adam(),
               tutti_sparse_cross_entropy(.from_logits = true), 0, 1, "no memory");
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

TUTTI_TEST(shuffled_data_is_not_split_for_validation)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_sequential(job, tutti_dense(3));
    tutti_compile(m, .loss = tutti_sparse_cross_entropy(.from_logits = true));
    tutti_dataset *same = tutti_shuffle(examples(job), 0, .same_order = true);
    CHECK(tutti_fit(m, same, .validation_split = 0.5, .quiet = true) != NULL);
    CHECK(tutti_fit(m, tutti_cache(tutti_shuffle(examples(job), 0)), .validation_split = 0.5,
                    .quiet = true) != NULL);
    CHECK(tutti_fit(m, tutti_prefetch(tutti_shuffle(examples(job), 0), 1), .validation_split = 0.5,
                    .quiet = true) == NULL);
    CHECK_CONTAINS(tutti_error_message(), "shuffled anew in each epoch");
    CHECK_INT(tutti_close(job), 1);
}

TUTTI_TEST(weights_of_one_output_of_two_are_refused)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x;
    int64_t dims[] = {4, 1};
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, dims, &x));
    tutti_model *m = tutti_functional(job);
    tutti_sym a = tutti_input(m, "x", TUTTI_F32, 1);
    tutti_output(m, "p", tutti_call(tutti_dense(1), a));
    tutti_output(m, "q", tutti_call(tutti_dense(1), a));
    tutti_compile(m, .loss = tutti_mse());
    tutti_dataset *data = tutti_batch(
        tutti_name_components(tutti_from_tensor_slices(job, x, x, x, x), "x", "p", "q", "q_weight"),
        2);
    CHECK(tutti_fit(m, data, .quiet = true) == NULL);
    CHECK_CONTAINS(tutti_error_message(), "'q_weight' and no 'p_weight'");
    tutti_tensor_release(x);
    CHECK_INT(tutti_close(job), 1);
}

/* Data that was not batched says so, whatever it breaks first. */
TUTTI_TEST(single_examples_are_pointed_to_tutti_batch)
{
    for (int which = 0; which < 5; which++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_tensor *x, *y, *one_hot;
        CHECK_OK(tutti_tensor_create(TUTTI_F32, 4, (int64_t[]){10, 8, 8, 1}, &x));
        CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){10}, &y));
        CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){10, 3}, &one_hot));
        tutti_dataset *data = tutti_from_tensor_slices(job, x, which == 4 ? one_hot : y);
        tutti_layer *first = which == 1 ? tutti_conv2d(4, 3) : tutti_flatten();
        tutti_model *m =
            which == 0 || which == 4
                ? tutti_sequential(job, tutti_input_shape(8, 8, 1), first, tutti_dense(3))
                : tutti_sequential(job, first, tutti_flatten(), tutti_dense(3));
        tutti_compile(m, .loss = which == 4 ? tutti_cross_entropy(.from_logits = true)
                                            : tutti_sparse_cross_entropy(.from_logits = true));
        if (which == 2)
            CHECK(tutti_evaluate(m, data, NULL) != TUTTI_OK);
        else
            CHECK(!tutti_fit(m, data, .epochs = 1, .quiet = true));
        CHECK(tutti_job_check(job) != TUTTI_OK);
        CHECK_CONTAINS(tutti_error_message(), "tutti_batch");
        tutti_tensor_release(x);
        tutti_tensor_release(y);
        tutti_tensor_release(one_hot);
        CHECK_INT(tutti_close(job), 1);
    }
}

/* Whoever reads what a refused call gave, without asking whether it went well, finds nothing. */
TUTTI_TEST(refused_calls_leave_nothing_in_what_they_return)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_strategy *two = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
    tutti_strategy *one = tutti_strategy_one_device(.devices = "cpu:0");
    tutti_dataset *data = examples(job);
    tutti_model *m = tutti_sequential(job, tutti_dense(3));
    tutti_logs logs = {.count = 1, .items = {{"loss", 7}}};
    tutti_tensor *output = (tutti_tensor *)(uintptr_t)&logs, *none = NULL;
    tutti_compile(m, .loss = tutti_sparse_cross_entropy(.from_logits = true));
    TUTTI_WITH_STRATEGY(two)
    CHECK(tutti_fit(m, data, .quiet = true) != NULL);
    TUTTI_WITH_STRATEGY(one)
    CHECK(tutti_evaluate(m, data, &logs) == TUTTI_INVALID);
    CHECK(isnan(tutti_logs_get(&logs, "loss")));
    logs.count = 1;
    CHECK(tutti_train_on_batch(m, 0, &none, &logs) != TUTTI_OK);
    CHECK_INT(logs.count, 0);
    logs.count = 1;
    CHECK(tutti_test_on_batch(NULL, 1, &none, &logs) != TUTTI_OK);
    CHECK_INT(logs.count, 0);
    CHECK(tutti_predict(m, data, 1, &output) != TUTTI_OK);
    CHECK(output == NULL);
    output = (tutti_tensor *)(uintptr_t)&logs;
    CHECK(tutti_predict_on_batch(m, 0, &none, 1, &output) != TUTTI_OK);
    CHECK(output == NULL);
    CHECK_INT(tutti_close(job), 1);
    CHECK_OK(tutti_strategy_close(two));
    CHECK_OK(tutti_strategy_close(one));
}

/* Calls need no checking; a server's requests do. */
TUTTI_TEST(a_batch_that_fails_is_the_jobs_error)
{
    tutti_tensor *x, *y, *wrong, *output;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){2, 4}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 2, (int64_t[]){2, 4}, &wrong));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){2}, &y));
    tutti_tensor_set_int(y, 1, 3); /* of classes 0 to 2 */
    for (int training = 0; training < 2; training++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_model *m = tutti_sequential(job, tutti_dense(3));
        tutti_compile(m, .loss = tutti_sparse_cross_entropy(.from_logits = true));
        CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &output));
        tutti_tensor_release(output);
        CHECK(tutti_predict_on_batch(m, 1, &wrong, 1, &output) != TUTTI_OK);
        CHECK_OK(tutti_job_check(job));
        if (training)
            tutti_train_on_batch(m, 2, (tutti_tensor *[]){x, y}, NULL);
        else
            tutti_test_on_batch(m, 2, (tutti_tensor *[]){x, y}, NULL);
        CHECK(tutti_job_check(job) != TUTTI_OK);
        CHECK_CONTAINS(tutti_error_message(), "label");
        CHECK_INT(tutti_close(job), 1);
    }
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_tensor_release(wrong);
}

TUTTI_TEST(a_layer_stands_once_in_a_sequential_model)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_layer *twice = tutti_dense(4, .name = "twice");
    tutti_sequential(job, tutti_input_shape(4), twice, tutti_flatten(), twice);
    CHECK_STATUS(tutti_job_check(job), TUTTI_EXISTS);
    CHECK_CONTAINS(tutti_error_message(), "layer 'twice' stands in the sequential model already");
    CHECK_INT(tutti_close(job), 1);
}

/* Regularizers, constraints and initial values take so many numbers, and no others. */
TUTTI_TEST(texts_with_numbers_that_mean_nothing_are_refused)
{
    static const struct {
        const char *regularizer, *constraint, *message;
    } cases[] = {
        {"l2(1, 2)", NULL, "regularizer 'l2' takes at most 1 numbers, 2 are given"},
        {"l1_l2(1, 2, 3)", NULL, "regularizer 'l1_l2' takes at most 2"},
        {"l2(nan)", NULL, "regularizer 'l2' takes finite numbers, number 1 is nan"},
        {NULL, "max_norm(2, 3)", "constraint 'max_norm' takes at most 1"},
        {NULL, "unit_norm(3)", "constraint 'unit_norm' takes at most 0"},
        {NULL, "non_negative(1)", "constraint 'non_negative' takes at most 0"},
        {NULL, "max_norm(-1)", "constraint 'max_norm' keeps lengths from 0 to -1"},
        {NULL, "min_max_norm(2, 1)", "constraint 'min_max_norm' keeps lengths from 2 to 1"},
    };
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++)
        check_says(tutti_dense(3, .kernel_regularizer = cases[i].regularizer,
                               .kernel_constraint = cases[i].constraint),
                   tutti_adam(), tutti_sparse_cross_entropy(.from_logits = true), 0, 1,
                   cases[i].message);
}

TUTTI_TEST(a_metric_that_does_not_fit_is_named)
{
    static const char *const names[] = {"precision", "recall", "f1",  "auc",
                                        "mse",       "rmse",   "mae", "binary_accuracy"};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++) {
        tutti_job *job = tutti_open(NULL, NULL);
        tutti_model *m = tutti_sequential(job, tutti_dense(3));
        tutti_compile(m, .loss = tutti_sparse_cross_entropy(.from_logits = true),
                      .metrics = names[i]);
        CHECK(tutti_fit(m, examples(job), .quiet = true) == NULL);
        CHECK_CONTAINS(tutti_error_message(), "targets need the outputs' shape");
        CHECK_CONTAINS(tutti_error_message(), names[i]);
        CHECK_INT(tutti_close(job), 1);
    }
}
