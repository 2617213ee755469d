/* accumulate_kept_test.c: a training that is saved in the middle of a step of several batches goes
 * on to the bits of one that was never stopped, on any replicas. */
#include <stdio.h>

#include "base/params.h"
#include "data/test_folder.h"
#include "nn/training/examples_test.h"
#include "parallel/strategies/workers.h"

/* 5 batches an epoch, 3 to a step: no epoch but the third ends with a step. */
enum { EXAMPLES = 47, BATCH = 10, GATHERED = 3, WIDTH = 6, CLASSES = 3 };

static tutti_model *make(tutti_job *job)
{
    tutti_model *m = tutti_sequential(job, tutti_input_shape(WIDTH),
                                      tutti_dense(8, .activation = TUTTI_TANH, .name = "first"),
                                      tutti_dense(CLASSES));
    tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.05),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .accumulate = GATHERED);
    return m;
}

static tutti_dataset *examples(tutti_job *job)
{
    return tutti__test_examples(job, (tutti_test_examples){EXAMPLES, WIDTH, CLASSES, 5, BATCH});
}

static tutti_status weights_of(tutti_model *m, tutti_tensor **ret)
{
    TUTTI_TRY(tutti_job_check(tutti_model_job(m)));
    return tutti_get_weight(m, "first/kernel", ret);
}

static tutti_status train_whole(tutti_strategy *strategy, tutti_tensor **ret)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_status status = TUTTI_OK;
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = make(job);
        tutti_fit(m, examples(job), .epochs = 3, .quiet = true);
        status = weights_of(m, ret);
    }
    tutti_close(job);
    return status;
}

/* `path` has the training as it stood at the end of the first epoch. */
static tutti_status train_first(tutti_strategy *strategy, const char *path)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_status status = TUTTI_OK;
    char weights[4200];
    snprintf(weights, sizeof weights, "%s.weights", path);
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = make(job);
        tutti_fit(m, examples(job), .epochs = 1, .quiet = true,
                  .callbacks = TUTTI_LIST(tutti_checkpoint(path)));
        status = tutti_job_check(job);
        if (status == TUTTI_OK) /* by all processes: the checkpoint is there for each of them */
            status = tutti_save_weights(m, weights);
    }
    tutti_close(job);
    return status;
}

static tutti_status train_rest(tutti_strategy *strategy, const char *path, tutti_tensor **ret)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_status status = TUTTI_OK;
    TUTTI_WITH_STRATEGY(strategy)
    {
        tutti_model *m = make(job);
        status = tutti_restore_checkpoint(m, path);
        if (status == TUTTI_OK)
            tutti_fit(m, examples(job), .epochs = 3, .quiet = true);
        if (status == TUTTI_OK)
            status = weights_of(m, ret);
    }
    tutti_close(job);
    return status;
}

/* Stopped under one strategy, gone on under another; the bits are the same where both are. */
static tutti_status check(tutti_strategy *before, tutti_strategy *after, const char *path)
{
    tutti_tensor *whole, *rest;
    TUTTI_TRY(train_whole(after, &whole));
    TUTTI_TRY(train_first(before, path));
    TUTTI_TRY(train_rest(after, path, &rest));
    for (int64_t i = 0; i < tutti_tensor_count(whole); i++)
        WORKER_NEAR(tutti_tensor_get(rest, i), tutti_tensor_get(whole, i));
    if (before == after)
        WORKER_EXPECT(tutti_tensor_same(rest, whole));
    tutti_tensor_release(whole);
    tutti_tensor_release(rest);
    return TUTTI_OK;
}

TUTTI_TEST(gathered_gradients_of_several_devices_are_kept)
{
    test_folder folder;
    char path[4200];
    test_folder_make(&folder);
    CHECK_OK(tutti__param_set("CPU_DEVICES", "2"));
    snprintf(path, sizeof path, "%s/kept", folder.path);
    tutti_strategy *two = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
    tutti_strategy *one = tutti_strategy_one_device(.devices = "cpu:0");
    CHECK_OK(check(two, two, path));
    CHECK_OK(check(two, one, path));
    CHECK_OK(check(one, two, path));
    CHECK_OK(tutti_strategy_close(one));
    CHECK_OK(tutti_strategy_close(two));
    test_folder_remove(&folder);
}

static tutti_status check_workers(tutti_strategy *strategy, void *context)
{
    tutti_tensor *alone, *together;
    const char *path = context;
    tutti_strategy *one = tutti_strategy_one_device(.devices = "cpu:0");
    TUTTI_TRY(check(strategy, strategy, path));
    TUTTI_TRY(train_rest(one, path, &alone)); /* of each process for itself */
    TUTTI_TRY(train_rest(strategy, path, &together));
    for (int64_t i = 0; i < tutti_tensor_count(alone); i++)
        WORKER_NEAR(tutti_tensor_get(alone, i), tutti_tensor_get(together, i));
    tutti_tensor_release(alone);
    tutti_tensor_release(together);
    return tutti_strategy_close(one);
}

TUTTI_TEST(gathered_gradients_of_several_processes_are_kept)
{
    test_folder folder;
    char path[4200];
    test_folder_make(&folder);
    snprintf(path, sizeof path, "%s/kept", folder.path);
    tutti__test_workers(2, NULL, check_workers, path);
    test_folder_remove(&folder);
}
