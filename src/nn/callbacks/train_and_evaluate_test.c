/* train_and_evaluate_test.c: training and evaluation by specs: in one process, started again, and
 * with an evaluator beside it. */
#include "tutti/train_and_evaluate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "base/world.h"
#include "tutti/job.h"
#include "tutti/optimizer.h"

typedef struct evaluations {
    int count;
    int64_t steps[32];
    double loss[32];
} evaluations;

static void note(void *context, int64_t step, const tutti_logs *logs)
{
    evaluations *e = context;
    CHECK(e->count < 32);
    e->steps[e->count] = step;
    e->loss[e->count++] = tutti_logs_get(logs, "loss");
}

/* y = 3 x + 1 in ten batches. */
static tutti_dataset *line_data(tutti_job *job)
{
    tutti_tensor *x = NULL, *y = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){80, 1}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){80, 1}, &y));
    for (int i = 0; i < 80; i++) {
        tutti_tensor_set(x, i, i % 7 / 7.0);
        tutti_tensor_set(y, i, 3 * (i % 7 / 7.0) + 1);
    }
    tutti_dataset *data = tutti_batch(tutti_from_tensor_slices(job, x, y), 8);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return data;
}

static tutti_status train(const char *folder, int64_t max_steps, evaluations *e, double *ret_weight)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_sequential(job, tutti_dense(1, .name = "line"));
    tutti_dataset *data = line_data(job);
    tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.05), .loss = tutti_mse());
    tutti_status status = tutti_train_and_evaluate(
        m, folder,
        TUTTI_TRAIN_SPEC(.data = data, .max_steps = max_steps, .save_steps = 6, .quiet = true),
        TUTTI_EVAL_SPEC(.data = data, .evaluated = note, .context = e, .patience = 30));
    tutti_tensor *w = NULL;
    if (status == TUTTI_OK && ret_weight) {
        CHECK_OK(tutti_get_weight(m, "line/kernel", &w));
        *ret_weight = tutti_tensor_get(w, 0);
        tutti_tensor_release(w);
    }
    CHECK_INT(tutti_close(job), 0);
    return status;
}

TUTTI_TEST(train_and_evaluate_in_one_process)
{
    char folder[] = "/tmp/tutti-tae-XXXXXX";
    evaluations e = {0};
    CHECK(mkdtemp(folder) != NULL);
    CHECK_OK(train(folder, 20, &e, NULL));
    CHECK_INT(e.count, 4);
    for (int i = 0; i < 4; i++)
        CHECK_INT(e.steps[i], i < 3 ? 6 * (i + 1) : 20);
    CHECK(e.loss[3] < e.loss[0]);
}

TUTTI_TEST(train_and_evaluate_goes_on_to_the_same_bits)
{
    char once[] = "/tmp/tutti-tae-XXXXXX", twice[] = "/tmp/tutti-tae-XXXXXX";
    evaluations e = {0}, f = {0};
    double a, b;
    CHECK(mkdtemp(once) != NULL && mkdtemp(twice) != NULL);
    CHECK_OK(train(once, 30, &e, &a));
    CHECK_OK(train(twice, 12, &f, NULL));
    CHECK_OK(train(twice, 30, &f, &b));
    CHECK(a == b);
    CHECK_INT(e.count, 5);
    CHECK_INT(f.count, 5);
    for (int i = 0; i < 5; i++)
        CHECK(e.loss[i] == f.loss[i]);
}

TUTTI_TEST_ALONE(train_and_evaluate_with_an_evaluator_beside_it)
{
    char folder[] = "/tmp/tutti-tae-XXXXXX";
    evaluations e = {0};
    int status;
    CHECK(mkdtemp(folder) != NULL);
    pid_t trainer = fork();
    if (trainer == 0) {
        evaluations none = {0};
        setenv("TF_CONFIG",
               "{\"cluster\":{\"chief\":[\"localhost:4001\"],\"evaluator\":[\"localhost:4003\"]},"
               "\"task\":{\"type\":\"chief\",\"index\":0}}",
               1);
        tutti_status trained = train(folder, 20, &none, NULL);
        _exit(trained == TUTTI_OK && none.count == 0 ? 0 : 1);
    }
    setenv("TF_CONFIG",
           "{\"cluster\":{\"chief\":[\"localhost:4001\"],\"evaluator\":[\"localhost:4003\"]},"
           "\"task\":{\"type\":\"evaluator\",\"index\":0}}",
           1);
    CHECK_OK(train(folder, 20, &e, NULL));
    CHECK(waitpid(trainer, &status, 0) == trainer);
    CHECK_INT(status, 0);
    CHECK_INT(e.count, 4); /* at most five are kept, so that none is missed */
    for (int i = 0; i < e.count; i++)
        CHECK_INT(e.steps[i], i < 3 ? 6 * (i + 1) : 20);
    CHECK(e.loss[3] < e.loss[0]);
}
