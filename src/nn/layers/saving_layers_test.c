/* saving_layers_test.c: models of all sorts of layers, written as text and read again. */
#include <stdlib.h>

#include "nn/layers/layers_test.h"

/* A model, and what is read from its text, give the same for the same weights. */
static void comes_back(int count, tutti_layer **layers, tutti_tensor *input)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = (tutti_sequential)(job, count, layers), *again;
    tutti_tensor *y, *z;
    char *text;
    build_with(model, 1, &input);
    CHECK_OK(tutti_model_to_json(model, &text));
    again = tutti_model_from_json(job, text);
    free(text);
    CHECK_OK(tutti_job_check(job));
    build_with(again, 1, &input);
    CHECK_INT(tutti_weight_count(again), tutti_weight_count(model));
    CHECK_OK(tutti_predict_on_batch(model, 1, &input, 1, &y));
    CHECK_OK(tutti_predict_on_batch(again, 1, &input, 1, &z));
    CHECK(tutti_tensor_same(y, z));
    tutti_tensor_release(y);
    tutti_tensor_release(z);
    tutti_tensor_release(input);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(models_of_all_layers_come_back_from_text)
{
    comes_back(LAYERS(tutti_rescaling(2, .offset = 1),
                      tutti_conv2d(4, 2, .kernel_size[1] = 3, .activation = TUTTI_TANH),
                      tutti_depthwise_conv2d(2, .padding = "same"),
                      tutti_batch_norm(.no_center = true), tutti_group_norm(2),
                      tutti_zero_padding2d(0, .pads = {1, 2, 0, 1}), tutti_cropping2d(1),
                      tutti_up_sampling2d(2, .interpolation = "bilinear"), tutti_max_pool2d(2),
                      tutti_average_pool2d(2, .strides = {1}), tutti_spatial_dropout2d(0.5),
                      tutti_relu_layer(.max_value = 3), tutti_permute(3, 1, 2),
                      tutti_global_average_pool2d()),
               floats(DIMS(2, 6, 6, 2)));
    comes_back(
        LAYERS(tutti_text_vectorization(4, .vocabulary = "a\n\\n\nb \"c\"", .mask_zero = true),
               tutti_embedding(6, 4, .mask_zero = true), tutti_position_embedding(5),
               tutti_transformer_block(2, .use_causal_mask = true),
               tutti_lstm(2, .bidirectional = true, .return_sequences = true, .merge_mode = "sum"),
               tutti_gru(2, .return_sequences = true), tutti_rms_norm(), tutti_simple_rnn(3),
               tutti_repeat_vector(2), tutti_flatten(), tutti_softmax_layer()),
        texts(2, (const char *[]){"a b x", "b"}));
    comes_back(LAYERS(tutti_normalization(.mean = "1,2", .variance = "3"), tutti_masking(),
                      tutti_conv1d(4, 2, .padding = "causal"), tutti_layer_norm(.epsilon = 0.1),
                      tutti_multi_head_attention(2, 3, .value_dim = 2), tutti_up_sampling1d(2),
                      tutti_zero_padding1d(1), tutti_cropping1d(2), tutti_max_pool1d(2),
                      tutti_average_pool1d(2), tutti_leaky_relu_layer(),
                      tutti_elu_layer(.alpha = 0.5), tutti_activation(TUTTI_GELU),
                      tutti_prelu_layer(.alpha_initializer = "ones"), tutti_gaussian_noise(0.1),
                      tutti_reshape_layer(-1, 2), tutti_global_max_pool1d(.keepdims = true)),
               floats(DIMS(2, 6, 2)));
}
