/* training.h: a small training for the tests of callbacks: y = 2 x - 1 from one dense unit, eight
 * examples in batches of 2. */
#ifndef TUTTI_NN_CALLBACKS_TRAINING_H
#define TUTTI_NN_CALLBACKS_TRAINING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/test.h"
#include "base/world.h"
#include "nn/callbacks/checkpoint.h"
#include "nn/callbacks/common.h"
#include "tutti/tutti.h"

typedef struct training {
    tutti_job *job;
    tutti_model *model;
    tutti_dataset *data;
    char folder[200];
} training;

/* `flags` end with NULL. */
static inline training training_begin(const char *const *flags)
{
    training t = {.folder = "/tmp/tutti-callbacks-XXXXXX"};
    char program[] = "test", *arguments[10] = {program};
    int count = 1;
    for (; flags && flags[count - 1] && count < 9; count++)
        arguments[count] = (char *)(uintptr_t)flags[count - 1];
    char **list = arguments;
    CHECK(mkdtemp(t.folder) != NULL);
    t.job = tutti_open(&count, &list);
    float x[8], y[8];
    for (int i = 0; i < 8; i++) {
        x[i] = (float)i / 4 - 1;
        y[i] = 2 * x[i] - 1;
    }
    tutti_tensor *inputs, *targets;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){8, 1}, x, &inputs));
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 2, (int64_t[]){8, 1}, y, &targets));
    t.data = tutti_batch(tutti_from_tensor_slices(t.job, inputs, targets), 2);
    tutti_tensor_release(inputs);
    tutti_tensor_release(targets);
    t.model = tutti_sequential(t.job, tutti_dense(1, .name = "d", .kernel_initializer = "zeros"));
    CHECK_OK(
        tutti_compile(t.model, .optimizer = tutti_sgd(0.1), .loss = tutti_mse(), .metrics = "mae"));
    return t;
}

/* Closes the job, which gives `code`, and removes the folder. */
static inline void training_end_with(training t, int code)
{
    char command[300];
    CHECK_INT(tutti_close(t.job), code);
    snprintf(command, sizeof command, "rm -rf %s", t.folder);
    CHECK_INT(system(command), 0);
}

static inline void training_end(training t)
{
    training_end_with(t, 0);
}

/* The text of a file in the training's folder; from malloc. */
static inline char *training_text(const training *t, const char *name)
{
    const tutti_world *world = tutti__world();
    char path[300];
    void *data;
    size_t size;
    snprintf(path, sizeof path, "%s/%s", t->folder, name);
    CHECK_OK(world->read_file(world->self, path, 1 << 20, &data, &size));
    return data;
}

static inline double training_kernel(const training *t)
{
    tutti_tensor *value;
    CHECK_OK(tutti_get_weight(t->model, "d/kernel", &value));
    double kernel = tutti_tensor_get(value, 0);
    tutti_tensor_release(value);
    return kernel;
}

#endif
