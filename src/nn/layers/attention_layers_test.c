/* attention_layers_test.c: attention and blocks of transformers against Keras and their formulas.
 */
#include "nn/layers/layers_test.h"

TUTTI_TEST(attention_layers_are_those_of_keras)
{
    expect_of(tutti_multi_head_attention(2, 3), TENSORS(floats(DIMS(1, 3, 4))), DIMS(1, 3, 4),
              (double[]){-5.123009, 6.419399, -5.78486, 1.924737, -2.410954, 3.467591, -4.65379,
                         3.386622, -4.066339, 4.861738, -4.923631, 1.76363});
    expect_of(tutti_multi_head_attention(2, 3, .use_causal_mask = true, .no_bias = true),
              TENSORS(floats(DIMS(1, 3, 4))), DIMS(1, 3, 4),
              (double[]){4.65, -2.335, 0.01800012, -0.3659999, 1.633773, -0.7160404, -0.7414098,
                         1.270106, 1.18223, -1.365958, 0.3204967, 0.03327887});
    expect_of(tutti_multi_head_attention(2, 2, .value_dim = 3, .output_dim = 5),
              TENSORS(floats(DIMS(1, 2, 4)), floats(DIMS(1, 3, 2))), DIMS(1, 2, 5),
              (double[]){-0.9768021, 0.5324281, 0.8881813, 0.9717447, 0.1809751, -0.9593988,
                         0.537187, 0.556407, 0.9835283, 0.1801141});
    expect_of(tutti_multi_head_attention(1, 2),
              TENSORS(floats(DIMS(1, 2, 4)), floats(DIMS(1, 3, 2)), floats(DIMS(1, 3, 3))),
              DIMS(1, 2, 4),
              (double[]){-1.844773, 1.351333, -1.620801, 1.575305, -1.977398, 1.409063, -1.71288,
                         1.673581});
}

/* Padding is seen by nobody; Keras gives these two of four steps, the others are padding's own. */
TUTTI_TEST(attention_layer_passes_over_what_is_masked)
{
    const double expected[2][8] = {
        {2.176572, -0.336322, -2.836802, 3.693867, 2.230996, -0.3762909, -2.8879, 3.762676},
        {-1.180834, -0.2040389, 0.8788697, -0.5216457, -1.180684, -0.1918224, 0.8689827,
         -0.5116117}};
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = tutti_sequential(job, tutti_embedding(5, 4, .mask_zero = true),
                                          tutti_multi_head_attention(2, 2));
    tutti_tensor *x = ids(DIMS(2, 4), (int64_t[]){3, 1, 2, 0, 4, 2, 0, 0}), *y;
    CHECK_OK(tutti_build(model, TUTTI_I64, 4));
    number_weights(model);
    CHECK_OK(tutti_predict_on_batch(model, 1, &x, 1, &y));
    for (int i = 0; i < 16; i++)
        CHECK_NEAR(tutti_tensor_get(y, i / 8 * 16 + i % 8), expected[i / 8][i % 8], 1e-4);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(transformer_block_layer_follows_its_formula)
{
    expect(LAYERS(tutti_transformer_block(2, .mlp_ratio = 2)), floats(DIMS(1, 3, 4)), DIMS(1, 3, 4),
           (double[]){0.8722253, 1.838099, -0.6959543, -0.01118408, 0.7685816, 1.823201, -0.8700741,
                      -0.04036634, 0.8227613, 1.892174, -0.6900271, 0.1195669});
    expect(LAYERS(tutti_transformer_block(2, .mlp_ratio = 2, .normalize_first = true,
                                          .use_causal_mask = true)),
           floats(DIMS(1, 3, 4)), DIMS(1, 3, 4),
           (double[]){2.253206, -0.8975757, 0.06009982, 1.101118, 1.989921, -1.557692, 0.7395144,
                      1.706032, 2.974492, 0.06577019, -2.134453, 4.288383});
}

/* The same results when the time is not known before it runs. */
TUTTI_TEST(transformer_block_layer_takes_any_time)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = tutti_functional(job);
    tutti_sym x = tutti_input(model, "x", TUTTI_F32, TUTTI_ANY, 4);
    tutti_output(model, "y", tutti_call(tutti_transformer_block(2, .mlp_ratio = 2), x));
    tutti_tensor *input = floats(DIMS(1, 3, 4));
    expect_model(model, 1, &input, DIMS(1, 3, 4),
                 (double[]){0.8722253, 1.838099, -0.6959543, -0.01118408, 0.7685816, 1.823201,
                            -0.8700741, -0.04036634, 0.8227613, 1.892174, -0.6900271, 0.1195669});
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(attention_layers_learn)
{
    learns(LAYERS(tutti_multi_head_attention(2, 3, .use_causal_mask = true),
                  tutti_global_average_pool1d(), tutti_dense(2)),
           floats(DIMS(3, 4, 4)), 0.3);
    learns(LAYERS(tutti_embedding(5, 4, .mask_zero = true),
                  tutti_transformer_block(2, .normalize_first = true, .dropout = 0.1),
                  tutti_global_average_pool1d(), tutti_dense(2)),
           ids(DIMS(2, 4), (int64_t[]){3, 1, 2, 0, 4, 2, 0, 0}), 0.5);
}

TUTTI_TEST(attention_layers_say_what_is_wrong)
{
    refuses(tutti_multi_head_attention(0, 2), floats(DIMS(2, 3, 4)), "heads");
    refuses(tutti_multi_head_attention(2, 2), floats(DIMS(2, 3)), "input 0 is");
    refuses(tutti_transformer_block(3), floats(DIMS(2, 3, 4)), "cannot be cut into 3 heads");
}
