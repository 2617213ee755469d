/* cut_test.c: models that end where another one's value is made. */
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "tutti/tutti.h"

static tutti_tensor *ones(int64_t rows, int64_t columns)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, columns}, &t));
    for (int64_t i = 0; i < rows * columns; i++)
        tutti_tensor_set(t, i, 1 + 0.1 * (double)i);
    return t;
}

static tutti_model *make(tutti_job *job)
{
    tutti_model *m = tutti_sequential(job, tutti_input_shape(3),
                                      tutti_dense(4, .name = "a", .activation = TUTTI_RELU),
                                      tutti_dense(5, .name = "b"), tutti_dense(2, .name = "c"));
    CHECK_OK(tutti_job_check(job));
    return m;
}

static bool same_weight(tutti_model *a, tutti_model *b, const char *name)
{
    tutti_tensor *x, *y;
    CHECK_OK(tutti_get_weight(a, name, &x));
    CHECK_OK(tutti_get_weight(b, name, &y));
    bool same = tutti_tensor_same(x, y);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return same;
}

TUTTI_TEST(a_model_is_cut_at_a_layer)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make(job);
    tutti_tensor *x = ones(2, 3), *y = ones(2, 2), *features;
    tutti_compile(m, .optimizer = tutti_sgd(0.1), .loss = tutti_mse());
    CHECK_OK(tutti_train_on_batch(m, 2, (tutti_tensor *[]){x, y}, NULL));
    CHECK_OK(tutti_freeze(m, "a/bias"));
    tutti_set_trainable(tutti_find_layer(m, "b"), false);
    tutti_model *body = tutti_cut(m, "b");
    CHECK_OK(tutti_job_check(job));
    CHECK_INT(tutti_weight_count(body), 4);
    CHECK(same_weight(m, body, "a/kernel") && same_weight(m, body, "b/bias"));
    for (int i = 0; i < 4; i++) {
        tutti_weight_info info;
        CHECK_OK(tutti_weight_at(body, i, &info));
        CHECK_INT(info.trainable, strcmp(info.name, "a/kernel") == 0);
    }
    CHECK_OK(tutti_predict_on_batch(body, 1, &x, 1, &features));
    CHECK_INT(tutti_tensor_dims(features)[1], 5);
    tutti_tensor_release(features);
    /* A copy: training the one leaves the other. */
    CHECK_OK(tutti_train_on_batch(m, 2, (tutti_tensor *[]){x, y}, NULL));
    CHECK(!same_weight(m, body, "a/kernel"));
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_functional_model_keeps_the_inputs_that_count)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_functional(job);
    tutti_sym a = tutti_input(m, "a", TUTTI_F32, 3), b = tutti_input(m, "b", TUTTI_F32, 3);
    tutti_sym w = tutti_variable(tutti_sym_graph(a), tutti_ones(3), .name = "scale");
    tutti_sym h = tutti_call(tutti_dense(4, .name = "h"), tutti_mul(a, w));
    tutti_output(
        m, "y",
        tutti_call(tutti_dense(1, .name = "y"), tutti_call(tutti_concatenate_layer(), h, b)));
    tutti_tensor *x = ones(2, 3), *y, *two;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){3}, &two));
    for (int i = 0; i < 3; i++)
        tutti_tensor_set(two, i, 2);
    CHECK_OK((tutti_build)(m, 0, NULL));
    CHECK_OK(tutti_set_weight(m, "scale", two));
    tutti_model *body = tutti_cut(m, "h");
    CHECK_OK(tutti_job_check(job));
    CHECK_INT(tutti_weight_count(body), 3);
    CHECK(same_weight(m, body, "scale") && same_weight(m, body, "h/kernel"));
    CHECK_OK(tutti_predict_on_batch(body, 1, &x, 1, &y));
    CHECK_INT(tutti_tensor_dims(y)[1], 4);
    /* As a layer it brings what it has. */
    tutti_model *whole = tutti_sequential(job, tutti_model_layer(body), tutti_dense(1));
    tutti_build(whole, TUTTI_F32, 3);
    tutti_tensor *there;
    CHECK_OK(tutti_get_weight(whole, "model/scale", &there));
    CHECK(tutti_tensor_same(there, two));
    tutti_tensor_release(there);
    tutti_tensor_release(y);
    tutti_tensor_release(two);
    tutti_tensor_release(x);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(a_value_that_is_not_there_says_what_there_is)
{
    tutti_job *job = tutti_open(NULL, NULL);
    CHECK(tutti_cut(make(job), "bb") == NULL);
    CHECK_CONTAINS(tutti_error_message(), "makes no value 'bb'; did you mean 'b'");
    CHECK_CONTAINS(tutti_error_message(), "a, b, c");
    CHECK(tutti_close(job) != 0);
}
