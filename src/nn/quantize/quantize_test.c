/* quantize_test.c: models in integers of 8 bits predict as their originals do. */
#include "tutti/tutti.h"

#include <math.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"

static tutti_dataset *digits(tutti_job *job, uint64_t seed, int64_t count, int64_t batch,
                             tutti_tensor **ret_labels)
{
    tutti_tensor *images, *labels;
    CHECK_OK(tutti_digits_draw(seed, 0, count, &images, &labels));
    tutti_dataset *data = tutti_batch(tutti_from_tensor_slices(job, images, labels), batch);
    tutti_tensor_release(images);
    if (ret_labels)
        *ret_labels = labels;
    else
        tutti_tensor_release(labels);
    return data;
}

/* Share of rows whose largest logit is at the label. */
static double accuracy(tutti_model *model, tutti_dataset *data, tutti_tensor *labels)
{
    tutti_tensor *logits;
    CHECK_OK(tutti_predict(model, data, 1, &logits));
    int64_t rows = tutti_tensor_dims(logits)[0], classes = tutti_tensor_dims(logits)[1], right = 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t best = 0;
        for (int64_t c = 1; c < classes; c++)
            if (tutti_tensor_get(logits, r * classes + c) >
                tutti_tensor_get(logits, r * classes + best))
                best = c;
        right += best == tutti_tensor_get_int(labels, r);
    }
    tutti_tensor_release(logits);
    return (double)right / (double)rows;
}

TUTTI_TEST(quantised_digits_network_keeps_its_accuracy)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* test devices would take half a minute */
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *labels;
    tutti_dataset *train = digits(job, 1, 4096, 64, NULL);
    tutti_dataset *test = digits(job, 2, 2000, 500, &labels);
    tutti_model *m = tutti_sequential(job, tutti_conv2d(8, 3, .activation = TUTTI_RELU),
                                      tutti_max_pool2d(2), tutti_flatten(),
                                      tutti_dense(32, .activation = TUTTI_RELU), tutti_dense(10));
    tutti_compile(m, .optimizer = tutti_adam(),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
    tutti_fit(m, train, .epochs = 3, .quiet = true);
    double floats = accuracy(m, test, labels);
    CHECK(floats > 0.9);
    for (int shallow = 0; shallow < 2; shallow++) { /* the convolution too */
        tutti_model *q = tutti_quantize_model(m, train, .batches = 8, .shallow = shallow != 0);
        CHECK_OK(tutti_job_check(job));
        CHECK(q != NULL);
        CHECK(strstr(tutti_model_name(q), "_int8") != NULL);
        CHECK_INT(tutti_weight_count(q), 0);
        double bytes = accuracy(q, test, labels);
        if (fabs(floats - bytes) > 0.005)
            tutti__test_fail(__FILE__, __LINE__, "accuracy %.4f in f32, %.4f in bytes", floats,
                             bytes);
        tutti_compile(q, .loss = tutti_sparse_cross_entropy(.from_logits = true),
                      .metrics = "accuracy");
        tutti_logs logs;
        CHECK_OK(tutti_evaluate_with(q, test, TUTTI_OPTIONS(tutti_evaluate_options, .quiet = true),
                                     &logs));
        CHECK_NEAR(tutti_logs_get(&logs, "accuracy"), bytes, 1e-6);
    }
    tutti_tensor_release(labels);
    CHECK_INT(tutti_close(job), 0);
}

/* Weights and inputs that are multiples of their scales lose nothing. */
TUTTI_TEST(quantised_dense_layer_is_near_its_original)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x, *y, *kernel, *a, *b;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){8, 20}, &x));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){8, 3}, &y));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){20, 3}, &kernel));
    for (int64_t i = 0; i < 160; i++)
        tutti_tensor_set(x, i, i == 0 ? -1 : i == 1 ? 254 : (double)(i * 37 % 250));
    for (int64_t i = 0; i < 60; i++)
        tutti_tensor_set(kernel, i, i < 3 ? 127 : (double)(i * 29 % 255 - 127));
    tutti_dataset *data = tutti_batch(tutti_from_tensor_slices(job, x, y), 8);
    tutti_model *m = tutti_sequential(job, tutti_input_shape(20), tutti_dense(3, .name = "d"));
    CHECK_OK((tutti_build)(m, 0, NULL));
    CHECK_OK(tutti_set_weight(m, "d/kernel", kernel));
    tutti_model *q = tutti_quantize_model(m, data, .name = "small", .shallow = true);
    CHECK(q != NULL);
    CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &a));
    CHECK_OK(tutti_predict_on_batch(q, 1, &x, 1, &b));
    for (int64_t i = 0; i < 24; i++)
        CHECK_NEAR(tutti_tensor_get(b, i), tutti_tensor_get(a, i), 0.5);
    tutti_tensor_release(a);
    tutti_tensor_release(b);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_tensor_release(kernel);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(quantise_refuses_models_without_products)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_dataset *data = digits(job, 1, 8, 4, NULL);
    tutti_model *m = tutti_sequential(job, tutti_flatten(), tutti_activation(TUTTI_RELU));
    CHECK(tutti_quantize_model(m, data) == NULL);
    CHECK_STATUS(tutti_job_check(job), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "no products or convolutions");
    tutti_close(job);
}
