/* flow_test.c: data of other shapes than the first batch's, data that goes on over epochs, data
 * that can be read once; and models inside models that are not trained. */
#include "tutti/tutti.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"

static tutti_tensor *filled(tutti_dtype dtype, int rank, const int64_t *dims)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(dtype, rank, dims, &t));
    for (int64_t i = 0; i < tutti_tensor_count(t); i++)
        tutti_tensor_set(t, i, dtype == TUTTI_I64 ? (double)(i % 3) : sin((double)i));
    return t;
}

TUTTI_TEST(batches_of_other_lengths_are_taken)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_sequential(job, tutti_lstm(4, .return_sequences = true), tutti_dense(3));
    tutti_compile(m, .loss = tutti_sparse_cross_entropy(.from_logits = true),
                  .metrics = "accuracy");
    for (int64_t length = 3; length < 7; length++) {
        tutti_logs logs;
        tutti_tensor *y = filled(TUTTI_I64, 2, (int64_t[]){2, length}), *guess;
        tutti_tensor *x = filled(TUTTI_F32, 3, (int64_t[]){2, length, 5});
        CHECK_OK(tutti_train_on_batch(m, 2, (tutti_tensor *[]){x, y}, &logs));
        CHECK_OK(tutti_test_on_batch(m, 2, (tutti_tensor *[]){x, y}, &logs));
        CHECK(tutti_logs_get(&logs, "loss") > 0);
        CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &guess));
        CHECK_INT(tutti_tensor_dims(guess)[1], length);
        tutti_tensor_release(guess);
        tutti_tensor_release(x);
        tutti_tensor_release(y);
    }
    tutti_tensor *wide = filled(TUTTI_F32, 3, (int64_t[]){2, 4, 6}), *guess;
    CHECK_STATUS(tutti_predict_on_batch(m, 1, &wide, 1, &guess), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "input 'input' is f32[2,4,6], it takes f32[?,?,5]");
    tutti_tensor_release(wide);
    CHECK_INT(tutti_close(job), 0);
}

/* ---- data that goes on ---- */

typedef struct counter {
    int64_t next, end;
    int64_t seen[64];
    int count;
} counter;

static tutti_status count_on(void *context, tutti_element *ret)
{
    counter *c = context;
    if (c->next >= c->end)
        return TUTTI_OK;
    for (int i = 0; i < 2; i++) {
        tutti_tensor *t = filled(TUTTI_F32, 2, (int64_t[]){1, 1});
        tutti_tensor_set(t, 0, (double)c->next);
        TUTTI_TRY(tutti_element_set(ret, i, t));
    }
    c->next++;
    return TUTTI_OK;
}

static tutti_status note(void *context, tutti_element *element)
{
    counter *c = context;
    c->seen[c->count++ % 64] = tutti_tensor_get_int(element->tensors[0], 0);
    return TUTTI_OK;
}

static tutti_model *line(tutti_job *job)
{
    tutti_model *m = tutti_sequential(job, tutti_dense(1));
    tutti_compile(m, .optimizer = tutti_adam(), .loss = tutti_mse());
    return m;
}

TUTTI_TEST(a_generator_without_reset_serves_epochs_of_steps)
{
    tutti_job *job = tutti_open(NULL, NULL);
    counter c = {.end = 100};
    tutti_dataset *data =
        tutti_map(tutti_from_generator(job, &(tutti_generator){.next = count_on, .context = &c}),
                  note, .context = &c);
    tutti_model *m = line(job);
    CHECK(tutti_fit(m, data, .epochs = 3, .steps_per_epoch = 4, .quiet = true) != NULL);
    CHECK_INT(tutti_model_steps(m), 12);
    CHECK_INT(c.count, 12); /* the first was looked at for its shape, and not lost */
    for (int i = 0; i < 12; i++)
        CHECK_INT(c.seen[i], i);
    CHECK_INT(tutti_close(job), 0);
}

static tutti_dataset *endless(tutti_job *job, counter *c)
{
    tutti_tensor *x = filled(TUTTI_F32, 2, (int64_t[]){7, 1});
    for (int i = 0; i < 7; i++)
        tutti_tensor_set(x, i, i);
    tutti_dataset *data = tutti_map(
        tutti_repeat(tutti_batch(tutti_from_tensor_slices(job, x, x), 1), 0), note, .context = c);
    tutti_tensor_release(x);
    return data;
}

TUTTI_TEST(endless_data_goes_on_where_the_epoch_stopped)
{
    char folder[] = "/tmp/tutti-flow-XXXXXX", path[100], file[120];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/at", folder);
    snprintf(file, sizeof file, "%s.safetensors", path);
    tutti_job *job = tutti_open(NULL, NULL);
    counter c = {0}, d = {0};
    tutti_model *m = line(job), *again = line(job);
    tutti_build(m, TUTTI_F32, 1);
    tutti_build(again, TUTTI_F32, 1);
    CHECK(tutti_fit(m, endless(job, &c), .epochs = 2, .steps_per_epoch = 5, .quiet = true) != NULL);
    CHECK_INT(c.seen[c.count - 1], 9 % 7);
    CHECK_OK(tutti_save_checkpoint(m, path));
    CHECK_OK(tutti_restore_checkpoint(again, path));
    CHECK(tutti_fit(again, endless(job, &d), .epochs = 3, .steps_per_epoch = 5, .quiet = true) !=
          NULL);
    CHECK_INT(d.seen[d.count - 1], 14 % 7);
    CHECK_INT(tutti_model_steps(again), 15);
    CHECK_INT(tutti_close(job), 0);
    CHECK_INT(unlink(file), 0);
    CHECK_INT(rmdir(folder), 0);
}

/* ---- what a step is built with may change ---- */

TUTTI_TEST(class_weights_may_change_from_fit_to_fit)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x = filled(TUTTI_F32, 2, (int64_t[]){12, 2});
    tutti_tensor *y = filled(TUTTI_I64, 1, (int64_t[]){12});
    tutti_dataset *data = tutti_batch(tutti_from_tensor_slices(job, x, y), 12);
    tutti_model *m = tutti_sequential(job, tutti_dense(3, .kernel_initializer = "zeros"));
    tutti_compile(m, .optimizer = tutti_sgd(1e-12),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
    double twice[] = {2, 2, 2}, thrice[] = {3, 3, 3}, *weights[] = {twice, twice, NULL, thrice};
    for (int i = 0; i < 4; i++) {
        const tutti_history *h =
            tutti_fit(m, data, .quiet = true, .class_weights = {weights[i] ? 3 : 0, weights[i]});
        CHECK_NEAR(tutti_history_get(h, "loss", 0), log(3) * (weights[i] ? weights[i][0] : 1),
                   1e-5);
    }
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(sums_of_a_restored_training_begin_anew)
{
    char folder[] = "/tmp/tutti-flow-XXXXXX", path[100], file[120];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/at", folder);
    snprintf(file, sizeof file, "%s.safetensors", path);
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x = filled(TUTTI_F32, 2, (int64_t[]){8, 2});
    tutti_tensor *y = filled(TUTTI_F32, 2, (int64_t[]){8, 1});
    tutti_dataset *data = tutti_batch(tutti_from_tensor_slices(job, x, y), 4);
    tutti_model *m = line(job), *again = line(job);
    tutti_fit(m, data, .epochs = 1, .validation = data, .quiet = true);
    CHECK_OK(tutti_save_checkpoint(m, path));
    CHECK_OK(tutti_restore_checkpoint(again, path));
    const tutti_history *h = tutti_fit(again, data, .epochs = 2, .validation = data, .quiet = true);
    const tutti_history *whole =
        tutti_fit(m, data, .epochs = 2, .initial_epoch = 1, .validation = data, .quiet = true);
    CHECK_INT(tutti_history_epochs(h), 1);
    CHECK_NEAR(tutti_history_get(h, "loss", 0), tutti_history_get(whole, "loss", 0), 0);
    CHECK_NEAR(tutti_history_get(h, "val_loss", 0), tutti_history_get(whole, "val_loss", 0), 0);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
    CHECK_INT(unlink(file), 0);
    CHECK_INT(rmdir(folder), 0);
}

TUTTI_TEST(a_frozen_model_inside_another_is_not_trained)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x = filled(TUTTI_F32, 2, (int64_t[]){8, 2}), *before[2], *after[2];
    tutti_tensor *y = filled(TUTTI_F32, 2, (int64_t[]){8, 1});
    const char *const names[] = {"model/dense/kernel", "model/batch_norm/moving_mean"};
    tutti_layer *inner =
        tutti_model_layer(tutti_sequential(job, tutti_dense(3), tutti_batch_norm()));
    tutti_model *m = tutti_sequential(job, tutti_input_shape(2), inner, tutti_dense(1));
    tutti_set_trainable(inner, false);
    tutti_compile(m, .loss = tutti_mse());
    for (int i = 0; i < 2; i++)
        CHECK_OK(tutti_get_weight(m, names[i], &before[i]));
    CHECK(tutti_fit(m, tutti_batch(tutti_from_tensor_slices(job, x, y), 4), .epochs = 2,
                    .quiet = true) != NULL);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(tutti_get_weight(m, names[i], &after[i]));
        CHECK(tutti_tensor_same(before[i], after[i]));
        tutti_tensor_release(before[i]);
        tutti_tensor_release(after[i]);
    }
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
}

static tutti_status keep(void *context, tutti_element *element)
{
    return TUTTI_OK;
}

static const char *fitting(tutti_job *job, tutti_dataset *data)
{
    tutti_model *m = tutti_sequential(job, tutti_dense(1));
    tutti_compile(m, .loss = tutti_mse());
    CHECK(tutti_fit(m, data, .quiet = true) == NULL || tutti_job_check(job) != TUTTI_OK);
    CHECK_STATUS(tutti_job_check(job), TUTTI_INVALID);
    tutti_close(job);
    return tutti_error_message();
}

/* `all` examples in batches of 8, of which those that are not full are dropped. */
static const char *fitting_full_batches(int64_t all, bool mapped)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x = filled(TUTTI_F32, 2, (int64_t[]){all, 2});
    tutti_tensor *y = filled(TUTTI_F32, 2, (int64_t[]){all, 1});
    tutti_dataset *data = tutti_from_tensor_slices(job, x, y);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    if (mapped) /* types are not known then */
        data = tutti_map(data, keep);
    return fitting(job, tutti_prefetch(tutti_batch(data, 8, .drop_remainder = true), 2));
}

TUTTI_TEST(data_that_gives_nothing_says_what_leaves_nothing)
{
    for (int mapped = 0; mapped < 2; mapped++) {
        CHECK_CONTAINS(fitting_full_batches(5, mapped), "has no elements: batch (flow_test.c:");
        CHECK_CONTAINS(fitting_full_batches(5, mapped),
                       "drops what fills no batch of 8, and is given 5; make batches smaller");
        const char *message = fitting_full_batches(0, mapped);
        CHECK_CONTAINS(message, "has no elements");
        CHECK(!strstr(message, "batch (flow"));
    }
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x = filled(TUTTI_F32, 2, (int64_t[]){4, 2});
    tutti_dataset *none = tutti_take(tutti_from_tensor_slices(job, x, x), 0);
    tutti_tensor_release(x);
    CHECK_CONTAINS(fitting(job, tutti_batch(none, 2)), "leaves none of 4");
}
