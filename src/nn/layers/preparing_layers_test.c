/* preparing_layers_test.c: layers that prepare data: numbers and texts. */
#include "nn/layers/layers_test.h"

TUTTI_TEST(layers_scale_data_as_keras_does)
{
    expect(LAYERS(tutti_rescaling(2, .offset = -0.5)), floats(DIMS(1, 4)), DIMS(1, 4),
           (double[]){-1.7, 1.1, -0.7, -2.5});
    expect(LAYERS(tutti_normalization(.mean = "0.5,-1,2", .variance = "4,0.25,1")),
           floats(DIMS(2, 3)), DIMS(2, 3), (double[]){-0.55, 3.6, -2.1, -0.75, 2.8, -2.5});
}

TUTTI_TEST(normalization_layer_adapts_to_data)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x = floats(DIMS(6, 2)), *y;
    tutti_layer *layer = tutti_normalization();
    CHECK_OK(tutti_adapt_normalization(layer, tutti_batch(tutti_from_tensor_slices(job, x), 4), 0));
    tutti_model *model = tutti_sequential(job, layer);
    CHECK_OK(tutti_predict_on_batch(model, 1, &x, 1, &y));
    for (int c = 0; c < 2; c++) {
        double sum = 0, square = 0;
        for (int i = 0; i < 6; i++) {
            double v = tutti_tensor_get(y, 2 * i + c);
            sum += v;
            square += v * v;
        }
        CHECK_NEAR(sum / 6, 0, 1e-6);
        CHECK_NEAR(square / 6, 1, 1e-5);
    }
    CHECK_STATUS(tutti_adapt_normalization(layer, tutti_from_tensor_slices(job, x), 0),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "before the model sees data");
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 1);
}

static void expect_numbers(tutti_layer *layer, tutti_tensor *input, int rank, const int64_t *dims,
                           const double *expected)
{
    expect(LAYERS(layer), input, rank, dims, expected);
}

TUTTI_TEST(string_lookup_layer_numbers_strings)
{
    expect_numbers(tutti_string_lookup("red\ngreen\nblue"),
                   texts(4, (const char *[]){"blue", "red", "Red", ""}), DIMS(4),
                   (double[]){3, 1, 0, 0});
    refuses(tutti_string_lookup(NULL), texts(1, (const char *[]){"a"}), "has no vocabulary");
    refuses(tutti_string_lookup("a\nb\na"), texts(1, (const char *[]){"a"}), "'a' twice");
    refuses(tutti_string_lookup("a"), floats(DIMS(2)), "takes strings");
}

TUTTI_TEST(text_vectorization_layer_numbers_words)
{
    expect_numbers(tutti_text_vectorization(4, .vocabulary = "the\ncat\nsat"),
                   texts(3, (const char *[]){"The  cat, sat. on the mat", "  CAT!", "... \t"}),
                   DIMS(3, 4), (double[]){2, 3, 4, 1, 3, 0, 0, 0, 0, 0, 0, 0});
    expect_numbers(tutti_text_vectorization(3, .vocabulary = "The\ncat,", .keep_case = true,
                                            .keep_punctuation = true),
                   texts(2, (const char *[]){"The cat,", "the cat"}), DIMS(2, 3),
                   (double[]){2, 3, 0, 1, 1, 0});
    expect_numbers(tutti_text_vectorization(5, .vocabulary = "a\n\xc3\xa9\n\\n\n\\\\",
                                            .characters = true, .keep_punctuation = true),
                   texts(1, (const char *[]){"A\xc3\xa9\n\\x"}), DIMS(1, 5),
                   (double[]){2, 3, 4, 5, 1});
    refuses(tutti_text_vectorization(0, .vocabulary = "a"), texts(1, (const char *[]){"a"}),
            "output_sequence_length");
}

TUTTI_TEST(text_layers_find_their_vocabulary_in_data)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_tensor *x = texts(3, (const char *[]){"b a c", "a b", "B, d"});
    tutti_layer *words = tutti_text_vectorization(2),
                *few = tutti_text_vectorization(2, .max_tokens = 4);
    tutti_layer *strings = tutti_string_lookup(NULL);
    CHECK_OK(tutti_adapt_vocabulary(words, tutti_from_tensor_slices(job, x), 0));
    CHECK_STR(tutti_get_vocabulary(words), "b\na\nc\nd");
    CHECK_OK(tutti_adapt_vocabulary(few, tutti_from_tensor_slices(job, x), 0));
    CHECK_STR(tutti_get_vocabulary(few), "b\na");
    CHECK_OK(tutti_adapt_vocabulary(strings, tutti_batch(tutti_from_tensor_slices(job, x), 2), 0));
    CHECK_STR(tutti_get_vocabulary(strings), "B, d\na b\nb a c");
    tutti_layer_release(words);
    tutti_layer_release(few);
    tutti_layer_release(strings);
    tutti_tensor_release(x);
    CHECK_INT(tutti_close(job), 0);
}

/* From strings to a number, in one model that is trained. */
TUTTI_TEST(model_of_texts_learns)
{
    learns(LAYERS(tutti_text_vectorization(4, .vocabulary = "good\nbad", .mask_zero = true),
                  tutti_embedding(4, 3, .mask_zero = true), tutti_lstm(3), tutti_dense(1)),
           texts(3, (const char *[]){"good", "bad bad", "very good"}), 0.3);
}
