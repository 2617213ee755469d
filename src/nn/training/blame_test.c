/* blame_test.c: what a message blames: compile's line and the batch for labels, the file for JSON,
 * the layer for a size that no memory holds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "tutti/checkpoint.h"
#include "tutti/tutti.h"

TUTTI_TEST(labels_that_are_no_classes_blame_compile_and_the_batch)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x, *y;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){8, 3}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){8}, &y));
    tutti_tensor_set_int(y, 6, 7);
    tutti_model *m = tutti_sequential(job, tutti_dense(3));
    char line[80];
    snprintf(line, sizeof line, "blame_test.c:%d", __LINE__ + 1);
    tutti_compile(m, .loss = tutti_sparse_cross_entropy(.from_logits = true));
    CHECK(tutti_fit(m, tutti_batch(tutti_from_tensor_slices(job, x, y), 4), .quiet = true) == NULL);
    CHECK(tutti_job_check(job) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), "epoch 1, batch 2: ");
    CHECK_CONTAINS(tutti_error_message(), line);
    CHECK_CONTAINS(tutti_error_message(), "7");
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_close(job);
}

TUTTI_TEST(a_damaged_model_blames_its_file)
{
    tutti_job *job = tutti_open(NULL, NULL);
    char path[] = "damaged.json";
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    fputs("{\"tutti\": \"0.1.0\", \"kind\": \"cubic\"}", file);
    fclose(file);
    CHECK(tutti_load_model(job, "damaged") == NULL);
    CHECK(tutti_job_check(job) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), "damaged.json: the model's JSON");
    remove(path);
    tutti_close(job);
}

TUTTI_TEST(a_layer_too_large_is_named)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0"));
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_sequential(job, tutti_input_shape(8), tutti_dense(4),
                                      tutti_dense((int64_t)1 << 43, .name = "huge"));
    tutti_tensor *x, *y;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){1, 8}, &x));
    CHECK(tutti_predict_on_batch(m, 1, &x, 1, &y) != TUTTI_OK);
    CHECK(tutti_job_check(job) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), "huge");
    tutti_tensor_release(x);
    tutti_close(job);
}
