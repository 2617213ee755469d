/* planned_test.c: what is planned for the values of a program is at most 1.1 times what is in use
 * at once: training steps and inference of networks of every kind. */
#include <stdio.h>

#include "base/test.h"
#include "nn/model/model.h"
#include "tutti/tutti.h"

typedef tutti_model *model_builder(tutti_job *job);

static tutti_model *convolutional(tutti_job *job)
{
    return tutti_sequential(job, tutti_input_shape(12, 12, 2),
                            tutti_conv2d(16, 3, .activation = TUTTI_RELU), tutti_max_pool2d(2),
                            tutti_conv2d(24, 3, .padding = "same"), tutti_batch_norm(),
                            tutti_activation("gelu"), tutti_dropout(0.3), tutti_flatten(),
                            tutti_dense(40, .activation = TUTTI_TANH), tutti_dense(5));
}

static tutti_model *residual(tutti_job *job)
{
    tutti_model *m = tutti_functional(job, .name = "residual");
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, 12, 12, 2);
    x = tutti_call(tutti_conv2d(16, 3, .padding = "same"), x);
    for (int i = 0; i < 3; i++) {
        tutti_sym y = tutti_relu(tutti_call(tutti_batch_norm(), x));
        y = tutti_call(tutti_conv2d(16, 3, .padding = "same"), y);
        x = tutti_relu(tutti_add(x, y));
    }
    x = tutti_call(tutti_global_average_pool2d(), x);
    tutti_output(m, "y", tutti_call(tutti_dense(5), x));
    return m;
}

static tutti_model *transformer(tutti_job *job)
{
    return tutti_sequential(job, tutti_input_shape(12, 24), tutti_dense(32),
                            tutti_transformer_block(4, .dropout = 0.1, .normalize_first = true),
                            tutti_transformer_block(4, .use_causal_mask = true),
                            tutti_transformer_block(4), tutti_global_average_pool1d(),
                            tutti_dense(5));
}

static tutti_model *recurrent(tutti_job *job)
{
    return tutti_sequential(job, tutti_input_shape(12, 24),
                            tutti_lstm(16, .return_sequences = true), tutti_gru(24),
                            tutti_dense(30, .activation = TUTTI_RELU), tutti_dense(5));
}

static tutti_tensor *inputs_of(int rank, const int64_t *dims)
{
    tutti_tensor *x;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, rank, dims, &x));
    for (int64_t i = 0; i < tutti_tensor_count(x); i++)
        tutti_tensor_set(x, i, (double)(i * 7 % 23) / 11 - 1);
    return x;
}

static void check_plan(tutti_model *m, const char *what)
{
    tutti_session_info info;
    tutti_session_describe(m->session, &info);
    bool near = info.arena_bytes >= info.arena_bound &&
                (double)info.arena_bytes <= 1.1 * (double)info.arena_bound;
    if (!near)
        printf("%s of %s: %zu planned, %zu in use at once\n", what, tutti_model_name(m),
               info.arena_bytes, info.arena_bound);
    CHECK(near);
}

static void check_model(model_builder *build, int rank, const int64_t *shape)
{
    static const int64_t batches[] = {1, 64, 7, 3, 32};
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = build(job);
    tutti_compile(m, .loss = tutti_sparse_cross_entropy(.from_logits = true));
    for (size_t b = 0; b < TUTTI_COUNT(batches); b++) {
        int64_t dims[4] = {batches[b]};
        for (int i = 1; i < rank; i++)
            dims[i] = shape[i - 1];
        tutti_tensor *pair[2] = {inputs_of(rank, dims)}, *guess;
        CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, dims, &pair[1]));
        for (int64_t i = 0; i < dims[0]; i++)
            tutti_tensor_set_int(pair[1], i, i % 5);
        CHECK_OK(tutti_train_on_batch(m, 2, pair, NULL));
        check_plan(m, "training");
        CHECK_OK(tutti_predict_on_batch(m, 1, pair, 1, &guess));
        check_plan(m, "inference");
        tutti_tensor_release(guess);
        tutti_tensor_release(pair[0]);
        tutti_tensor_release(pair[1]);
    }
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(planned_memory_is_near_its_bound)
{
    static const int64_t image[] = {12, 12, 2}, sequence[] = {12, 24};
    check_model(convolutional, 4, image);
    check_model(residual, 4, image);
    check_model(transformer, 3, sequence);
    check_model(recurrent, 3, sequence);
}
