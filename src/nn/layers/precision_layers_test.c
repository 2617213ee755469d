/* precision_layers_test.c: layers in models that compute in 16 bits. */
#include <stdio.h>

#include "nn/layers/layers_test.h"

/* Trains layers in bf16 and f16; the output is f32 and the loss falls. */
static void learns_in(const char *precision, int count, tutti_layer **layers, tutti_tensor *input)
{
    char program[] = "test", flag[] = "--precision", value[8];
    char *words[] = {program, flag, value, NULL}, **argv = words;
    int argc = 3;
    snprintf(value, sizeof value, "%s", precision);
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_model *model = (tutti_sequential)(job, count, layers);
    tutti_tensor *y, *target;
    double first = 0, last = 0;
    CHECK_OK(tutti_predict_on_batch(model, 1, &input, 1, &y));
    CHECK_INT(tutti_tensor_dtype(y), TUTTI_F32);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, tutti_tensor_rank(y), tutti_tensor_dims(y), &target));
    CHECK_OK(tutti_compile(model, .optimizer = tutti_adam(.learning_rate = 0.02),
                           .loss = tutti_custom_loss(squares, NULL, "squares")));
    for (int step = 0; step < 30; step++) {
        tutti_logs logs;
        CHECK_OK(tutti_train_on_batch(model, 2, (tutti_tensor *[]){input, target}, &logs));
        last = tutti_logs_get(&logs, "loss");
        first = step == 0 ? last : first;
    }
    CHECK(first > 0);
    CHECK(last < 0.7 * first);
    for (int i = 0; i < tutti_weight_count(model); i++) {
        tutti_weight_info info;
        CHECK_OK(tutti_weight_at(model, i, &info));
        CHECK_INT(info.type.dtype, TUTTI_F32);
    }
    tutti_tensor_release(y);
    tutti_tensor_release(target);
    tutti_tensor_release(input);
    CHECK_INT(tutti_close(job), 0);
}

static void check_precision(const char *precision)
{
    int64_t words[] = {1, 2, 3, 0, 4, 1, 0, 0};
    learns_in(precision,
              LAYERS(tutti_conv2d(4, 2, .activation = TUTTI_RELU), tutti_batch_norm(),
                     tutti_depthwise_conv2d(2), tutti_group_norm(2), tutti_spatial_dropout2d(0.1),
                     tutti_up_sampling2d(2, .interpolation = "bilinear"), tutti_max_pool2d(2),
                     tutti_global_average_pool2d(), tutti_dense(2)),
              floats(DIMS(3, 5, 5, 2)));
    learns_in(precision,
              LAYERS(tutti_embedding(5, 4, .mask_zero = true), tutti_position_embedding(4),
                     tutti_transformer_block(2, .dropout = 0.1), tutti_rms_norm(),
                     tutti_lstm(3, .return_sequences = true, .bidirectional = true),
                     tutti_gru(3, .return_sequences = true, .dropout = 0.1), tutti_simple_rnn(3),
                     tutti_gaussian_noise(0.01), tutti_dense(2)),
              ids(DIMS(2, 4), words));
    learns_in(precision,
              LAYERS(tutti_normalization(.mean = "0.1,0.2", .variance = "1"), tutti_masking(),
                     tutti_conv1d(3, 2, .padding = "causal"), tutti_layer_norm(),
                     tutti_global_max_pool1d(), tutti_dense(2)),
              floats(DIMS(3, 6, 2)));
}

TUTTI_TEST(layers_learn_in_bf16)
{
    check_precision("bf16");
}

TUTTI_TEST(layers_learn_in_f16)
{
    check_precision("f16");
}
