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
    CHECK_CONTAINS(tutti_error_message(), "label 7 in row 2 is none of the 3 classes");
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_close(job);
}

/* What fit says of these targets for a model of 3 classes, after a check of compile's line. */
static const char *blamed(tutti_loss loss, tutti_dtype dtype, int rank, double first)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x, *y;
    char line[80];
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){8, 4}, &x));
    CHECK_OK(tutti_tensor_create(dtype, rank, (int64_t[]){8, 3}, &y));
    if (dtype != TUTTI_STRING)
        tutti_tensor_set(y, 5, first);
    tutti_model *m = tutti_sequential(job, tutti_dense(3));
    tutti_dataset *data = tutti_name_components(tutti_from_tensor_slices(job, x, y), "x", "y");
    snprintf(line, sizeof line, "blame_test.c:%d", __LINE__ + 1);
    tutti_compile(m, .loss = loss);
    CHECK(tutti_fit(m, tutti_batch(data, 4), .quiet = true) == NULL);
    CHECK(tutti_job_check(job) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), line);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_close(job);
    return tutti_error_message();
}

TUTTI_TEST(targets_of_a_wrong_type_say_what_the_data_holds)
{
    const char *message = blamed(tutti_sparse_cross_entropy(), TUTTI_F32, 2, 1);
    CHECK_CONTAINS(message, "component 1 'y' of the data, are f32[");
    CHECK_CONTAINS(message, "use tutti_cross_entropy");
    message = blamed(tutti_cross_entropy(), TUTTI_I64, 1, 1);
    CHECK_CONTAINS(message, "component 1 'y' of the data, are i64[");
    CHECK_CONTAINS(message, "tutti_one_hot_labels");
    message = blamed(tutti_sparse_cross_entropy(), TUTTI_STRING, 1, 1);
    CHECK_CONTAINS(message, "string");
    CHECK_CONTAINS(message, "tutti_string_lookup");
    message = blamed(tutti_mse(), TUTTI_F32, 1, 1);
    CHECK_CONTAINS(message, "targets need the outputs' shape");
    message = blamed(tutti_sparse_cross_entropy(), TUTTI_F32, 1, 0.5);
    CHECK_CONTAINS(message, "epoch 1, batch 2: row 1 of the targets, f32[4], is 0.5");
    CHECK_CONTAINS(message, "tutti_cast_components");
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
