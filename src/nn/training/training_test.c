/* training_test.c: what surrounds a step: penalties, constraints, class weights, validation,
 * running means, schedules, summaries. */
#include "tutti/tutti.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/shortage.h"
#include "base/test.h"

/* x = 1 for every example; y = class 0 for three of four. */
static tutti_dataset *lopsided(tutti_job *job, int64_t batch)
{
    tutti_tensor *x, *y;
    int64_t dims[] = {64, 1};
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, dims, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, dims, &y));
    for (int64_t i = 0; i < 64; i++) {
        tutti_tensor_set(x, i, 1);
        tutti_tensor_set_int(y, i, i % 4 == 3);
    }
    tutti_dataset *data = tutti_batch(tutti_from_tensor_slices(job, x, y), batch);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return data;
}

static tutti_model *logits(tutti_job *job, const char *regularizer, const char *constraint)
{
    return tutti_sequential(job, tutti_input_shape(1),
                            tutti_dense(2, .name = "out", .kernel_initializer = "zeros",
                                        .kernel_regularizer = regularizer,
                                        .kernel_constraint = constraint));
}

static double weight_at(tutti_model *m, const char *name, int64_t index)
{
    tutti_tensor *value;
    CHECK_OK(tutti_get_weight(m, name, &value));
    double number = tutti_tensor_get(value, index);
    tutti_tensor_release(value);
    return number;
}

/* Logits of both classes: kernel + bias. */
static double margin(tutti_model *m)
{
    return weight_at(m, "out/kernel", 0) + weight_at(m, "out/bias", 0) -
           weight_at(m, "out/kernel", 1) - weight_at(m, "out/bias", 1);
}

TUTTI_TEST(class_weights_balance_the_classes)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = lopsided(job, 64);
    tutti_model *plain = logits(job, NULL, NULL), *even = logits(job, NULL, NULL);
    double weights[] = {1, 3};
    for (int i = 0; i < 2; i++) {
        tutti_model *m = i == 0 ? plain : even;
        tutti_compile(m, .optimizer = tutti_sgd(1.0),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        if (i == 0)
            tutti_fit(m, data, .epochs = 100, .quiet = true);
        else
            tutti_fit(m, data, .epochs = 100, .quiet = true, .class_weights = {2, weights});
    }
    CHECK_OK(tutti_job_check(job));
    CHECK_NEAR(margin(plain), log(3), 1e-3); /* odds of 3 to 1 */
    CHECK_NEAR(margin(even), 0, 1e-4);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(regularizers_add_to_the_loss_and_pull)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = lopsided(job, 64);
    tutti_model *free_one = logits(job, NULL, NULL), *held = logits(job, "l2(0.5)", NULL);
    for (int i = 0; i < 2; i++) {
        tutti_model *m = i == 0 ? free_one : held;
        tutti_compile(m, .optimizer = tutti_sgd(0.5),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        tutti_fit(m, data, .epochs = 50, .quiet = true);
    }
    CHECK_OK(tutti_job_check(job));
    CHECK(fabs(weight_at(held, "out/kernel", 0)) <
          0.5 * fabs(weight_at(free_one, "out/kernel", 0)));
    tutti_logs logs;
    tutti_tensor *zeros;
    int64_t dims[] = {1, 2};
    float big[] = {2, 0};
    CHECK_OK(tutti_evaluate(held, data, &logs));
    double before = tutti_logs_get(&logs, "loss");
    double penalty =
        0.5 * (pow(weight_at(held, "out/kernel", 0), 2) + pow(weight_at(held, "out/kernel", 1), 2));
    CHECK(before > penalty);
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, dims, big, &zeros));
    CHECK_OK(tutti_set_weight(held, "out/kernel", zeros));
    CHECK_OK(tutti_evaluate(held, data, &logs));
    CHECK(tutti_logs_get(&logs, "loss") > 2); /* 0.5 * 2^2 */
    tutti_tensor_release(zeros);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(constraints_hold_after_every_step)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = lopsided(job, 16);
    tutti_model *m = logits(job, NULL, "max_norm(0.1)"),
                *positive = logits(job, NULL, "non_negative");
    for (int i = 0; i < 2; i++) {
        tutti_model *each = i == 0 ? m : positive;
        tutti_compile(each, .optimizer = tutti_sgd(1.0),
                      .loss = tutti_sparse_cross_entropy(.from_logits = true));
        tutti_fit(each, data, .epochs = 5, .quiet = true);
    }
    CHECK_OK(tutti_job_check(job));
    for (int k = 0; k < 2; k++) {
        CHECK(fabs(weight_at(m, "out/kernel", k)) <= 0.1 + 1e-6);
        CHECK(weight_at(positive, "out/kernel", k) >= 0);
    }
    CHECK(fabs(weight_at(m, "out/kernel", 0)) > 0.09);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(the_last_part_of_the_data_validates)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = lopsided(job, 8);
    tutti_model *m = logits(job, NULL, NULL);
    tutti_compile(m, .optimizer = tutti_sgd(0.1),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy");
    const tutti_history *h =
        tutti_fit(m, data, .epochs = 2, .validation_split = 0.25, .quiet = true);
    CHECK_OK(tutti_job_check(job));
    CHECK_INT(tutti_model_steps(m), 2 * 6);
    CHECK_NEAR(tutti_history_get(h, "val_accuracy", 1), 0.75, 1e-9);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(running_means_take_the_weights_place)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = lopsided(job, 64);
    tutti_model *m = logits(job, NULL, NULL);
    tutti_compile(m, .optimizer = tutti_sgd(1.0, .ema_decay = 0.5),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
    tutti_fit(m, data, .epochs = 3, .quiet = true);
    double last = weight_at(m, "out/kernel", 0);
    CHECK_OK(tutti_swap_ema_weights(m));
    double mean = weight_at(m, "out/kernel", 0);
    CHECK(mean > 0 && mean < last);
    CHECK_OK(tutti_swap_ema_weights(m));
    CHECK_NEAR(weight_at(m, "out/kernel", 0), last, 0);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_schedule_sets_the_rate_of_every_step)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = lopsided(job, 16); /* four steps an epoch */
    tutti_model *m = logits(job, NULL, NULL);
    tutti_compile(m,
                  .optimizer =
                      tutti_sgd(1.0, .schedule = tutti_step_decay(.learning_rate = 0.8, .every = 2,
                                                                  .factor = 0.5)),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
    const tutti_history *h = tutti_fit(m, data, .epochs = 2, .quiet = true);
    CHECK_OK(tutti_job_check(job));
    CHECK_NEAR(tutti_history_get(h, "lr", 0), 0.4, 1e-12);
    CHECK_NEAR(tutti_history_get(h, "lr", 1), 0.1, 1e-12);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_summary_counts_parameters_flops_and_memory)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_sequential(job, tutti_input_shape(28, 28, 1),
                                      tutti_conv2d(32, 3, .activation = TUTTI_RELU),
                                      tutti_max_pool2d(2), tutti_flatten(), tutti_dense(10));
    tutti_compile(m, .loss = tutti_sparse_cross_entropy(.from_logits = true));
    char *text;
    CHECK_OK(tutti_summary(m, 64, &text));
    CHECK_CONTAINS(text, "conv2d (conv2d)");
    CHECK_CONTAINS(text, "[26, 26, 32]");
    CHECK_CONTAINS(text, "54090"); /* dense: 5408 * 10 + 10 */
    CHECK_CONTAINS(text, "parameters 54410");
    CHECK_CONTAINS(text, "optimizer 425.08 KiB"); /* two slots of 54410 floats */
    free(text);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_training_that_has_no_memory_to_begin_is_an_error)
{
    tutti__shortage_or_skip();
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = lopsided(job, 64);
    tutti_model *m = logits(job, NULL, NULL);
    CHECK_OK(tutti_compile(m, .optimizer = tutti_sgd(0.5), .loss = tutti_mse()));
    tutti_shortage shortage = tutti__shortage_begin();
    bool trained = tutti_fit(m, data, .quiet = true) != NULL;
    tutti__shortage_end(&shortage);
    CHECK(!trained);
    CHECK_INT(tutti_job_check(job), TUTTI_NO_MEMORY);
    tutti__job_discard(job);
}
