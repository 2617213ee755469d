/* examples_test.h: a small dataset for tests of trainings that are spread. */
#ifndef TUTTI_NN_TRAINING_EXAMPLES_TEST_H
#define TUTTI_NN_TRAINING_EXAMPLES_TEST_H

#include <math.h>

#include "base/test.h"
#include "tutti/tutti.h"

typedef struct tutti_test_examples {
    int64_t count, width, classes;
    int64_t stride; /* of the labels */
    int64_t batch;
} tutti_test_examples;

static inline tutti_dataset *tutti__test_examples(tutti_job *job, tutti_test_examples e)
{
    tutti_tensor *x, *y;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){e.count, e.width}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, (int64_t[]){e.count}, &y));
    for (int64_t i = 0; i < e.count * e.width; i++)
        tutti_tensor_set(x, i, sin((double)(i * i % 101)));
    for (int64_t i = 0; i < e.count; i++)
        tutti_tensor_set(y, i, (double)(i * e.stride % e.classes));
    tutti_dataset *data = tutti_batch(tutti_from_tensor_slices(job, x, y), e.batch);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return data;
}

#endif
