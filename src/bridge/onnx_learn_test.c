/* onnx_learn_test.c: imported models learn: on the tape, and inside another model. */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/test.h"
#include "tutti/tutti.h"

static tutti_tensor *numbers(int64_t rows, int64_t columns)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, columns}, &t));
    for (int64_t i = 0; i < rows * columns; i++)
        tutti_tensor_set(t, i, sin(1.3 * (double)(i * i % 37)));
    return t;
}

static tutti_tensor *classes(int64_t rows)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, &rows, &t));
    for (int64_t i = 0; i < rows; i++)
        tutti_tensor_set(t, i, (double)(i % 3));
    return t;
}

static tutti_model *imported(tutti_job *job)
{
    tutti_model *m =
        tutti_sequential(job, tutti_dense(8, .activation = TUTTI_RELU), tutti_dense(3));
    tutti_build(m, TUTTI_F32, 5);
    char path[64]; /* tests run side by side */
    snprintf(path, sizeof path, "/tmp/tutti_onnx_learn_%d.onnx", (int)getpid());
    CHECK_OK(tutti_export_onnx(m, path));
    tutti_model *model = tutti_import_onnx(job, path);
    unlink(path);
    CHECK_OK(tutti_job_check(job));
    return model;
}

TUTTI_TEST(onnx_models_learn_on_the_tape)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = imported(job);
    tutti_eager *e = tutti_model_eager(m);
    tutti_tensor *x = numbers(12, 5), *y = classes(12);
    double first = 0, last = 0;
    for (int step = 0; step < 20; step++)
        TUTTI_STEP(e) {
            tutti_sym in = tutti_eager_feed(e, x), truth = tutti_eager_feed(e, y),
                      loss = TUTTI_NO_SYM;
            TUTTI_TAPE(tape, e)
                loss = tutti_mean(
                    tutti_nn_sparse_cross_entropy(truth, tutti_apply(m, in, .training = true)));
            tutti_tape_minimize(&tape, tutti_adam(.learning_rate = 0.05), loss, m);
            last = tutti_scalar_value(loss);
            first = step == 0 ? last : first;
        }
    CHECK_OK(tutti_eager_check(e));
    CHECK(last < 0.8 * first);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(onnx_models_learn_inside_another)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *base = imported(job);
    tutti_model *m = tutti_sequential(job, tutti_model_layer(base), tutti_dense(3));
    tutti_build(m, TUTTI_F32, 5);
    tutti_compile(m, .optimizer = tutti_adam(),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
    tutti_tensor *x = numbers(12, 5), *y = classes(12), *before[8], *after;
    tutti_weight_info info;
    int count = tutti_weight_count(m), moved = 0;
    CHECK_INT(count, 6);
    for (int i = 0; i < count; i++) {
        CHECK_OK(tutti_weight_at(m, i, &info));
        CHECK_OK(tutti_get_weight(m, info.name, &before[i]));
    }
    for (int step = 0; step < 3; step++)
        CHECK_OK(tutti_train_on_batch(m, 2, (tutti_tensor *[]){x, y}, NULL));
    for (int i = 0; i < count; i++) {
        CHECK_OK(tutti_weight_at(m, i, &info));
        CHECK_OK(tutti_get_weight(m, info.name, &after));
        moved += !tutti_tensor_same(before[i], after);
        tutti_tensor_release(before[i]);
        tutti_tensor_release(after);
    }
    CHECK_INT(moved, 6);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
}

/* Adds to the last weight, a bias of three numbers. */
static void add_to_bias(tutti_model *m, double more)
{
    tutti_weight_info info;
    tutti_tensor *bias;
    CHECK_OK(tutti_weight_at(m, tutti_weight_count(m) - 1, &info));
    CHECK_OK(tutti_get_weight(m, info.name, &bias));
    CHECK_INT(tutti_tensor_count(bias), 3);
    for (int64_t i = 0; i < 3; i++)
        tutti_tensor_set(bias, i, tutti_tensor_get(bias, i) + more);
    CHECK_OK(tutti_set_weight(m, info.name, bias));
    tutti_tensor_release(bias);
}

static double answer(tutti_model *m, tutti_tensor *x)
{
    tutti_tensor *y;
    CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &y));
    double value = tutti_tensor_get(y, 0);
    tutti_tensor_release(y);
    return value;
}

/* Weights of a model that nobody trains are constants to its programs, until somebody sets or
 * trains them. */
TUTTI_TEST(onnx_answers_follow_the_weights)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = imported(job);
    tutti_tensor *x = numbers(4, 5), *y = classes(4);
    double first = answer(m, x);
    CHECK_NEAR(answer(m, x), first, 0);
    for (int i = 1; i < 4; i++) {
        add_to_bias(m, 2);
        CHECK_NEAR(answer(m, x), first + 2 * i, 1e-5);
        CHECK_NEAR(answer(m, x), first + 2 * i, 1e-5);
    }
    tutti_compile(m, .optimizer = tutti_sgd(0.5),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
    CHECK_OK(tutti_train_on_batch(m, 2, (tutti_tensor *[]){x, y}, NULL));
    CHECK(fabs(answer(m, x) - first - 6) > 1e-3);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
}
