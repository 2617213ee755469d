/* sequence_layers_test.c: recurrent layers, embeddings and masks against Keras. */
#include "nn/layers/layers_test.h"

TUTTI_TEST(recurrent_layers_are_those_of_keras)
{
    expect(LAYERS(tutti_embedding(5, 3)), ids(DIMS(2, 4), (int64_t[]){3, 1, 2, 0, 4, 2, 0, 0}),
           DIMS(2, 4, 3),
           (double[]){-0.7, 0.7, -0.2, 0.1,  -0.8, 0.6, -0.3, 1.1,  0.2, 0.5, -0.4, 1,
                      -1.1, 0.3, -0.6, -0.3, 1.1,  0.2, 0.5,  -0.4, 1,   0.5, -0.4, 1});
    expect(LAYERS(tutti_simple_rnn(2)), floats(DIMS(2, 3, 2)), DIMS(2, 2),
           (double[]){0.5628411, -0.890504, 0.7452729, -0.7892474});
    expect(LAYERS(tutti_simple_rnn(2, .return_sequences = true, .go_backwards = true,
                                   .no_bias = true)),
           floats(DIMS(1, 3, 2)), DIMS(1, 3, 2),
           (double[]){-0.2913126, -0.2069665, -0.6666493, -0.03623981, 0.7504142, -0.1063866});
    expect(LAYERS(tutti_gru(2)), floats(DIMS(2, 3, 2)), DIMS(2, 2),
           (double[]){-0.4382111, 0.515611, 0.2429825, 0.2122243});
    expect(LAYERS(tutti_gru(2, .return_sequences = true, .go_backwards = true, .no_bias = true)),
           floats(DIMS(1, 3, 2)), DIMS(1, 3, 2),
           (double[]){-0.2418204, 0.2195412, -0.3684556, 0.3398859, 0.1878707, 0.1572718});
    expect(LAYERS(tutti_lstm(2)), floats(DIMS(2, 3, 2)), DIMS(2, 2),
           (double[]){-0.1899387, 0.2137463, -0.2134415, 0.1616116});
    expect(LAYERS(tutti_lstm(2, .return_sequences = true, .go_backwards = true, .no_bias = true)),
           floats(DIMS(1, 3, 2)), DIMS(1, 3, 2),
           (double[]){0.06435367, 0.0250359, 0.2457667, -0.06888673, 0.02305734, -0.08970891});
    expect(LAYERS(tutti_gru(2, .bidirectional = true, .merge_mode = "sum")), floats(DIMS(1, 3, 2)),
           DIMS(1, 2), (double[]){-0.6517918, 0.8607343});
    expect(LAYERS(tutti_gru(2, .bidirectional = true, .merge_mode = "mul")), floats(DIMS(1, 3, 2)),
           DIMS(1, 2), (double[]){0.09359347, 0.1779494});
    expect(LAYERS(tutti_gru(2, .bidirectional = true, .merge_mode = "ave")), floats(DIMS(1, 3, 2)),
           DIMS(1, 2), (double[]){-0.3258959, 0.4303671});
}

#define EMBEDDED tutti_embedding(5, 3, .mask_zero = true)
#define IDS ids(DIMS(2, 4), (int64_t[]){3, 1, 2, 0, 4, 2, 0, 0}) /* 0 is masked */

TUTTI_TEST(simple_rnn_passes_over_what_is_masked)
{
    expect(LAYERS(EMBEDDED, tutti_simple_rnn(2)), IDS, DIMS(2, 2),
           (double[]){-0.270186, -0.484776, -0.7533399, -0.6685893});
    expect(LAYERS(EMBEDDED, tutti_simple_rnn(2, .return_sequences = true, .bidirectional = true)),
           IDS, DIMS(2, 4, 4),
           (double[]){-0.4699452, -0.4929879, 0.9430915,  -0.8891773, -0.8215825, 0.8906317,
                      -0.8858607, -0.5450525, -0.270186,  -0.484776,  0.6584091,  -0.5005202,
                      0,          0,          0,          0,          -0.2636249, -0.1390924,
                      0.3073713,  -0.4472967, -0.7533399, -0.6685893, 0.6584091,  -0.5005202,
                      0,          0,          0,          0,          0,          0,
                      0,          0});
}

TUTTI_TEST(gru_passes_over_what_is_masked)
{
    expect(LAYERS(EMBEDDED, tutti_gru(2)), IDS, DIMS(2, 2),
           (double[]){0.3487492, 0.5239726, -0.2257121, 0.5142505});
    expect(LAYERS(EMBEDDED, tutti_gru(2, .return_sequences = true, .bidirectional = true)), IDS,
           DIMS(2, 4, 4),
           (double[]){-0.1552146, 0.390965,   -0.122971,  0.2242294, 0.5591637,   -0.05849972,
                      -0.3503681, 0.5202892,  0.3487492,  0.5239726, -0.06273871, -0.02098634,
                      0,          0,          0,          0,         -0.2144459,  0.3399759,
                      0.3951703,  -0.2266996, -0.2257121, 0.5142505, -0.06273871, -0.02098634,
                      0,          0,          0,          0,         0,           0,
                      0,          0});
}

TUTTI_TEST(lstm_passes_over_what_is_masked)
{
    expect(LAYERS(EMBEDDED, tutti_lstm(2)), IDS, DIMS(2, 2),
           (double[]){-0.004575338, -0.1647777, -0.01953734, -0.2194186});
    expect(LAYERS(EMBEDDED, tutti_lstm(2, .return_sequences = true, .bidirectional = true)), IDS,
           DIMS(2, 4, 4),
           (double[]){0.007007076,
                      -0.1930726,
                      -0.04613261,
                      0.04298276,
                      -0.06523921,
                      0.006192709,
                      -0.1146636,
                      0.04198006,
                      -0.004575338,
                      -0.1647777,
                      0.03657063,
                      0.04105479,
                      0,
                      0,
                      0,
                      0,
                      0.006537742,
                      -0.1876338,
                      0.01912133,
                      0.0053368,
                      -0.01953734,
                      -0.2194186,
                      0.03657063,
                      0.04105479,
                      0,
                      0,
                      0,
                      0,
                      0,
                      0,
                      0,
                      0});
}

TUTTI_TEST(layers_behind_a_mask_pass_over_what_is_masked)
{
    expect(LAYERS(EMBEDDED, tutti_lstm(2, .return_sequences = true), tutti_gru(2)), IDS, DIMS(2, 2),
           (double[]){-0.6463227, 0.2926479, -0.5787973, 0.2561869});
    expect(LAYERS(EMBEDDED, tutti_global_average_pool1d()), IDS, DIMS(2, 3),
           (double[]){-0.3, 0.3333333, 0.2, -0.7, 0.7, -0.2});
    expect(LAYERS(tutti_rescaling(2, .offset = -0.5), tutti_masking(.mask_value = -2.7),
                  tutti_lstm(2)),
           floats(DIMS(1, 3, 2)), DIMS(1, 2), (double[]){0.2826087, -0.07782609});
}

/* Initial states go in, final states come out. */
/* Hidden steps may stand anywhere: in front, as Keras' pad_sequences puts them, or between. */
TUTTI_TEST(recurrent_layers_pass_over_masks_with_holes)
{
    expect(LAYERS(tutti_embedding(5, 3, .mask_zero = true), tutti_simple_rnn(2)),
           ids(DIMS(2, 4), (int64_t[]){0, 3, 1, 2, 4, 0, 0, 2}), DIMS(2, 2),
           (double[]){-0.270186, -0.484776, -0.7533399, -0.6685893});
    expect(LAYERS(tutti_embedding(5, 3, .mask_zero = true), tutti_gru(2)),
           ids(DIMS(2, 4), (int64_t[]){3, 0, 1, 2, 0, 0, 4, 2}), DIMS(2, 2),
           (double[]){0.3487492, 0.5239726, -0.2257121, 0.5142505});
    expect(LAYERS(tutti_embedding(5, 3, .mask_zero = true), tutti_lstm(2)),
           ids(DIMS(2, 4), (int64_t[]){0, 3, 1, 2, 0, 4, 2, 0}), DIMS(2, 2),
           (double[]){-0.004575338, -0.1647777, -0.01953734, -0.2194186});
    expect(LAYERS(tutti_embedding(5, 3, .mask_zero = true),
                  tutti_simple_rnn(2, .return_sequences = true)),
           ids(DIMS(2, 4), (int64_t[]){0, 3, 1, 2, 4, 0, 2, 0}), DIMS(2, 4, 2),
           (double[]){0, 0, -0.4699452, -0.4929879, -0.8215825, 0.8906317, -0.270186, -0.484776,
                      -0.2636249, -0.1390924, -0.2636249, -0.1390924, -0.7533399, -0.6685893,
                      -0.7533399, -0.6685893});
    expect(LAYERS(tutti_embedding(5, 3, .mask_zero = true),
                  tutti_simple_rnn(2, .return_sequences = true, .bidirectional = true)),
           ids(DIMS(1, 4), (int64_t[]){0, 4, 0, 2}), DIMS(1, 4, 4),
           (double[]){0, 0, 0, 0, -0.2636249, -0.1390924, 0.3073713, -0.4472967, 0, 0, 0, 0,
                      -0.7533399, -0.6685893, 0.6584091, -0.5005202});
}

TUTTI_TEST(lstm_layer_takes_and_gives_states)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *inputs[3] = {floats(DIMS(1, 3, 2)), floats(DIMS(1, 2)), floats(DIMS(1, 2))};
    tutti_tensor *y[3];
    tutti_sym syms[3];
    tutti_model *model = model_like(job, 3, inputs, syms);
    tutti_sym h = tutti_layer_apply(tutti_lstm(2, .return_state = true), 3, syms);
    CHECK_INT(tutti_sym_output_count(h), 3);
    tutti_output(model, "y", h);
    tutti_output(model, "last", tutti_sym_output(h, 1));
    tutti_output(model, "carry", tutti_sym_output(h, 2));
    build_with(model, 3, inputs);
    CHECK_OK(tutti_predict_on_batch(model, 3, inputs, 3, y));
    check_tensor(y[0], DIMS(1, 2), (double[]){-0.2280907, 0.2976968});
    check_tensor(y[1], DIMS(1, 2), (double[]){-0.2280907, 0.2976968});
    check_tensor(y[2], DIMS(1, 2), (double[]){-0.5810763, 0.4343174});
    for (int i = 0; i < 3; i++) {
        tutti_tensor_release(inputs[i]);
        tutti_tensor_release(y[i]);
    }
    CHECK_INT(tutti_close(job), 0);
}

static int64_t parameters(tutti_layer *layer)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = tutti_sequential(job, layer);
    int64_t total = 0;
    CHECK_OK(tutti_build(model, TUTTI_F32, 5, 3));
    for (int i = 0; i < tutti_weight_count(model); i++) {
        tutti_weight_info info;
        CHECK_OK(tutti_weight_at(model, i, &info));
        total += tutti_type_count(&info.type);
    }
    CHECK_INT(tutti_close(job), 0);
    return total;
}

TUTTI_TEST(recurrent_layers_have_as_many_weights_as_in_keras)
{
    CHECK_INT(parameters(tutti_simple_rnn(4)), 32);
    CHECK_INT(parameters(tutti_gru(4)), 108);
    CHECK_INT(parameters(tutti_lstm(4)), 128);
    CHECK_INT(parameters(tutti_lstm(4, .bidirectional = true, .return_state = true)), 256);
}

TUTTI_TEST(recurrent_weights_have_names_and_first_values_of_keras)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = tutti_sequential(job, tutti_lstm(2, .bidirectional = true));
    tutti_tensor *value;
    CHECK_OK(tutti_build(model, TUTTI_F32, 5, 3));
    CHECK_OK(tutti_get_weight(model, "lstm/backward/bias", &value));
    check_tensor(value, DIMS(8), (double[]){0, 0, 1, 1, 0, 0, 0, 0});
    tutti_tensor_release(value);
    CHECK_OK(tutti_get_weight(model, "lstm/forward/recurrent_kernel", &value));
    double dot = 0, length = 0; /* rows are orthonormal */
    for (int i = 0; i < 8; i++) {
        dot += tutti_tensor_get(value, i) * tutti_tensor_get(value, 8 + i);
        length += tutti_tensor_get(value, i) * tutti_tensor_get(value, i);
    }
    CHECK_NEAR(dot, 0, 1e-5);
    CHECK_NEAR(length, 1, 1e-5);
    tutti_tensor_release(value);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(recurrent_layers_learn)
{
    int64_t words[] = {1, 2, 3, 0, 4, 1, 0, 0, 2, 2, 1, 3};
    learns(LAYERS(tutti_embedding(5, 4, .mask_zero = true), tutti_lstm(3), tutti_dense(2)),
           ids(DIMS(3, 4), words), 0.2);
    learns(LAYERS(tutti_embedding(5, 4, .mask_zero = true),
                  tutti_gru(3, .bidirectional = true, .return_sequences = true, .dropout = 0.1),
                  tutti_simple_rnn(3, .go_backwards = true), tutti_dense(2)),
           ids(DIMS(3, 4), words), 0.3);
    learns(LAYERS(tutti_embedding(5, 4), tutti_position_embedding(6), tutti_global_average_pool1d(),
                  tutti_dense(2)),
           ids(DIMS(3, 4), words), 0.2);
}

TUTTI_TEST(position_embedding_layer_adds_a_row_for_each_step)
{
    double expected[12];
    for (int i = 0; i < 12; i++) /* x [2, 3, 2], positions [4, 2] */
        expected[i] = rule(0, i) + rule(1, i % 6);
    expect(LAYERS(tutti_position_embedding(4)), floats(DIMS(2, 3, 2)), DIMS(2, 3, 2), expected);
    /* A time that is not known when the model is made. */
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *model = tutti_functional(job);
    tutti_sym x = tutti_input(model, "x", TUTTI_F32, TUTTI_ANY, 2);
    tutti_output(model, "y", tutti_call(tutti_position_embedding(4), x));
    tutti_tensor *input = floats(DIMS(2, 3, 2));
    expect_model(model, 1, &input, DIMS(2, 3, 2), expected);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(sequence_layers_say_what_is_wrong)
{
    refuses(tutti_lstm(0), floats(DIMS(2, 3, 4)), "at least one unit");
    refuses(tutti_lstm(2), floats(DIMS(2, 3)), "takes sequences");
    refuses(tutti_gru(2, .bidirectional = true, .merge_mode = "join"), floats(DIMS(2, 3, 4)),
            "merge_mode");
    refuses(tutti_gru(2, .bidirectional = true, .go_backwards = true), floats(DIMS(2, 3, 4)),
            "backwards already");
    refuses(tutti_embedding(5, 2), floats(DIMS(2, 3)), "takes integers");
    refuses(tutti_embedding(0, 2), ids(DIMS(1, 1), (int64_t[]){0}), "at least 1 x 1");
    refuses(tutti_position_embedding(2), floats(DIMS(2, 3, 4)), "has 2 positions");
    refuses(tutti_masking(), floats(DIMS(2, 3)), "takes sequences");
}
