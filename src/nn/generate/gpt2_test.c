/* gpt2_test.c: a small GPT-2 that the package transformers wrote (tests/gpt2): its weights by their
 * names there, its scores, and its weights back. */
#include <math.h>
#include <string.h>

#include "data/test_folder.h"
#include "test_files.h"
#include "tutti/tutti.h"

enum { WORDS = 800, WIDTH = 24, CONTEXT = 32, GIVEN = 10, MADE = 12 };

static const tutti_weight_name gpt2_names[] = {
    {"wte/embeddings", "wte.weight"},
    {"wpe/embeddings", "wpe.weight"},
    {"ln_f/gamma", "ln_f.weight"},
    {"ln_f/beta", "ln_f.bias"},
    {"h_*/attention_norm/gamma", "h.*.ln_1.weight"},
    {"h_*/attention_norm/beta", "h.*.ln_1.bias"},
    {"h_*/attention/qkv/kernel", "h.*.attn.c_attn.weight"},
    {"h_*/attention/qkv/bias", "h.*.attn.c_attn.bias"},
    {"h_*/attention/attention_output/kernel", "h.*.attn.c_proj.weight"},
    {"h_*/attention/attention_output/bias", "h.*.attn.c_proj.bias"},
    {"h_*/mlp_norm/gamma", "h.*.ln_2.weight"},
    {"h_*/mlp_norm/beta", "h.*.ln_2.bias"},
    {"h_*/mlp/up/kernel", "h.*.mlp.c_fc.weight"},
    {"h_*/mlp/up/bias", "h.*.mlp.c_fc.bias"},
    {"h_*/mlp/down/kernel", "h.*.mlp.c_proj.weight"},
    {"h_*/mlp/down/bias", "h.*.mlp.c_proj.bias"},
};
#define GPT2_NAMES                                                                                 \
    {                                                                                              \
        (int)TUTTI_COUNT(gpt2_names), gpt2_names                                                   \
    }

static const char file[] = TUTTI_TEST_FILES "/gpt2/model.safetensors";
/* GPT2LMHeadModel of transformers 5.23 gave these for `given`: scores at places 0, 4 and 9. */
static const int32_t given[GIVEN] = {5, 700, 33, 12, 1, 799, 0, 64, 250, 301};
static const int words[] = {0, 1, 5, 64, 100, 301, 500, 799}, places[] = {0, 4, 9};
static const double expected[3][8] = {
    {-0.07502334, 0.822252, 0.1588568, -0.7328953, -1.882936, -0.7972878, -2.589317, -0.3635632},
    {-1.059696, -1.062833, -1.376186, 0.07423575, -0.03301233, -1.091622, -2.633988, -1.168117},
    {-0.05656959, 0.8097478, 0.5331234, -0.7289571, -0.6989197, -1.063538, -1.653155, -1.383187}};
static const double expected_sum = 449.5897743382666, expected_squares = 16882.795396475107;
static const double expected_loss = 8.926673889160156;
static const int32_t best[GIVEN] = {213, 415, 562, 230, 230, 54, 743, 54, 54, 54};
static const int32_t greedy[MADE] = {54, 590, 415, 559, 743, 400, 54, 216, 54, 506, 559, 319};

static tutti_model *gpt2(tutti_job *job, int64_t width)
{
    tutti_model *m = tutti_functional(job, .name = "gpt");
    tutti_layer *wte = tutti_embedding(WORDS, width, .name = "wte");
    tutti_sym x = tutti_call(wte, tutti_input(m, "tokens", TUTTI_I32, CONTEXT));
    x = tutti_call(tutti_position_embedding(CONTEXT, .name = "wpe"), x);
    for (int i = 0; i < 2; i++)
        x = tutti_call(tutti_transformer_block(3, .name = i ? "h_1" : "h_0",
                                               .use_causal_mask = true, .normalize_first = true,
                                               .activation = TUTTI_GELU_TANH, .fused_qkv = true),
                       x);
    x = tutti_call(tutti_layer_norm(.name = "ln_f", .epsilon = 1e-5), x);
    tutti_output(m, "logits", tutti_call(wte, x));
    CHECK_OK((tutti_build)(m, 0, NULL));
    return m;
}

/* The sample's tokens; those behind them change nothing. */
static tutti_tensor *sample(int64_t count)
{
    tutti_tensor *x;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 2, (int64_t[]){1, count}, &x));
    for (int i = 0; i < GIVEN; i++)
        tutti_tensor_set_int(x, i, given[i]);
    return x;
}

static void expect_scores(tutti_model *m)
{
    tutti_tensor *x = sample(CONTEXT), *y;
    double sum = 0, squares = 0, loss = 0;
    CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &y));
    const float *scores = tutti_tensor_data(y);
    for (int p = 0; p < 3; p++)
        for (int w = 0; w < 8; w++)
            CHECK_NEAR(scores[places[p] * WORDS + words[w]], expected[p][w], 1e-4);
    for (int t = 0; t < GIVEN; t++) {
        const float *row = scores + t * WORDS;
        double exponentials = 0;
        int64_t top = 0;
        for (int w = 0; w < WORDS; w++) {
            sum += row[w];
            squares += (double)row[w] * row[w];
            exponentials += exp(row[w]);
            top = row[w] > row[top] ? w : top;
        }
        CHECK_INT(top, best[t]);
        if (t + 1 < GIVEN)
            loss += (log(exponentials) - row[given[t + 1]]) / (GIVEN - 1);
    }
    CHECK_NEAR(sum, expected_sum, 1e-2);
    CHECK_NEAR(squares, expected_squares, 1e-1);
    CHECK_NEAR(loss, expected_loss, 1e-4);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
}

TUTTI_TEST(gpt2_scores_as_transformers_does)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = gpt2(job, WIDTH);
    tutti_tensor *x = sample(GIVEN), *all;
    CHECK_OK(tutti_load_weights(m, file, .names = GPT2_NAMES, .maybe_prefix = "transformer."));
    expect_scores(m);
    CHECK_OK(tutti_generate(m, x, MADE, &all, .temperature = TUTTI_ZERO));
    for (int i = 0; i < MADE; i++)
        CHECK_INT(tutti_tensor_get_int(all, GIVEN + i), greedy[i]);
    tutti_tensor_release(x);
    tutti_tensor_release(all);
    CHECK_INT(tutti_close(job), 0);
}

/* What goes out has the tensors that came in, and comes in again, with or without the prefix. */
TUTTI_TEST(gpt2_weights_go_out_as_they_came_in)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = gpt2(job, WIDTH);
    tutti_named_tensors in = {0}, out = {0};
    test_folder folder;
    test_folder_make(&folder);
    const char *path = test_folder_name(&folder, "out.safetensors");
    CHECK_OK(tutti_load_weights(m, file, .names = GPT2_NAMES, .prefix = "transformer."));
    CHECK_OK(tutti_save_weights(m, path, .names = GPT2_NAMES, .prefix = "transformer."));
    CHECK_OK(tutti_safetensors_load(file, &in));
    CHECK_OK(tutti_safetensors_load(path, &out));
    CHECK_INT(in.count, out.count);
    for (size_t i = 0; i < in.count; i++) {
        tutti_tensor *same = tutti_named_tensors_find(&out, in.items[i].name);
        CHECK(same != NULL && tutti_tensor_same(same, in.items[i].tensor));
    }
    tutti_named_tensors_clear(&in);
    tutti_named_tensors_clear(&out);
    tutti_job *other = tutti_open(NULL, NULL);
    tutti_model *fresh = gpt2(other, WIDTH);
    CHECK_OK(tutti_save_weights(m, path, .names = GPT2_NAMES));
    CHECK_OK(tutti_load_weights(fresh, path, .names = GPT2_NAMES, .maybe_prefix = "transformer."));
    expect_scores(fresh);
    CHECK_INT(tutti_close(other), 0);
    CHECK_INT(tutti_close(job), 0);
    test_folder_remove(&folder);
}

/* Loads tensors that were made for it. */
static tutti_status load_made(int count, const tutti_named_tensor *tensors, const char *ignored,
                              tutti_load_report *report)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_sequential(job, tutti_input_shape(2), tutti_dense(3));
    test_folder folder;
    test_folder_make(&folder);
    const char *path = test_folder_name(&folder, "made.safetensors");
    CHECK_OK(tutti_safetensors_save(path, (size_t)count, tensors));
    CHECK_OK((tutti_build)(m, 0, NULL));
    tutti_status status = tutti_load_weights(
        m, path, .names = TUTTI_WEIGHT_NAMES({"*/kernel", "*.w"}, {"dense/bias", "the.bias"}),
        .maybe_prefix = "a.", .ignored = ignored, .report = report);
    test_folder_remove(&folder);
    tutti_close(job);
    return status;
}

TUTTI_TEST(weights_by_other_names)
{
    tutti_tensor *kernel, *bias;
    tutti_load_report report;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){2, 3}, &kernel));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){3}, &bias));
    tutti_named_tensor all[] = {{"a.dense.w", kernel}, {"the.bias", bias}, {"a.mask.3", bias}};
    CHECK_OK(load_made(2, all, NULL, &report));
    CHECK_INT(report.loaded, 2);
    CHECK_STATUS(load_made(3, all, NULL, &report), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "unused      a.mask.3");
    free(report.text);
    CHECK_OK(load_made(3, all, "other, mask.*", &report));
    CHECK_STATUS(load_made(1, all, NULL, &report), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "missing     dense/bias");
    free(report.text);
    all[1].tensor = kernel;
    CHECK_STATUS(load_made(2, all, NULL, &report), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "mismatched  dense/bias: f32[2,3] in the file, f32[3]");
    free(report.text);
    tutti_tensor_release(kernel);
    tutti_tensor_release(bias);
}

TUTTI_TEST(names_of_weights_that_are_none)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_sequential(job, tutti_input_shape(2), tutti_dense(3));
    CHECK_STATUS(tutti_save_weights(m, "/tmp/never", .names = TUTTI_WEIGHT_NAMES({"*", "one"})),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'*' stands for several weights, 'one' for one tensor");
    CHECK_INT(tutti_close(job), 1);
}

TUTTI_TEST(json_numbers_of_files)
{
    double value;
    const char *path = TUTTI_TEST_FILES "/gpt2/config.json";
    CHECK_OK(tutti_json_number(path, "n_embd", &value));
    CHECK_NEAR(value, 24, 0);
    CHECK_STATUS(tutti_json_number(path, "n_nothing", &value), TUTTI_NOT_FOUND);
    CHECK_STATUS(tutti_json_number(path, "model_type", &value), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "'model_type' is a string; expected a number");
    CHECK_STATUS(tutti_json_number("/nowhere.json", "n", &value), TUTTI_NOT_FOUND);
}

/* The table learns from both places where it stands. */
TUTTI_TEST(tied_embeddings_learn_as_two_tables_would)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_functional(job);
    tutti_layer *table = tutti_embedding(5, 3, .name = "words");
    tutti_sym x = tutti_call(table, tutti_input(m, "x", TUTTI_I32, 2));
    tutti_output(m, "y", tutti_call(table, x));
    CHECK_OK((tutti_build)(m, 0, NULL));
    tutti_tensor *before, *after, *ids, *target;
    CHECK_OK(tutti_get_weight(m, "words/embeddings", &before));
    CHECK_OK(tutti_tensor_from(TUTTI_I32, 2, (int64_t[]){1, 2}, (int32_t[]){1, 4}, &ids));
    CHECK_OK(tutti_tensor_from(TUTTI_I32, 2, (int64_t[]){1, 2}, (int32_t[]){4, 0}, &target));
    tutti_compile(m, .optimizer = tutti_sgd(.learning_rate = 1),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "perplexity");
    tutti_logs logs;
    CHECK_OK(tutti_train_on_batch(m, 2, (tutti_tensor *[]){ids, target}, &logs));
    CHECK_NEAR(tutti_logs_get(&logs, "perplexity"), exp(tutti_logs_get(&logs, "loss")), 1e-5);
    CHECK_OK(tutti_get_weight(m, "words/embeddings", &after));
    double t[5][3], gradient[5][3] = {{0}};
    for (int i = 0; i < 15; i++)
        t[i / 3][i % 3] = tutti_tensor_get(before, i);
    for (int place = 0; place < 2; place++) {
        int id = place ? 4 : 1, truth = place ? 0 : 4;
        double p[5], sum = 0;
        for (int w = 0; w < 5; w++)
            sum += p[w] = exp(t[id][0] * t[w][0] + t[id][1] * t[w][1] + t[id][2] * t[w][2]);
        for (int w = 0; w < 5; w++)
            for (int k = 0; k < 3; k++) {
                double d = (p[w] / sum - (w == truth)) / 2;
                gradient[w][k] += d * t[id][k];
                gradient[id][k] += d * t[w][k];
            }
    }
    for (int i = 0; i < 15; i++)
        CHECK_NEAR(tutti_tensor_get(after, i), t[i / 3][i % 3] - gradient[i / 3][i % 3], 1e-6);
    tutti_tensor_release(before);
    tutti_tensor_release(after);
    tutti_tensor_release(ids);
    tutti_tensor_release(target);
    CHECK_INT(tutti_close(job), 0);
}

/* The job's first mistake leaves no model: a layer that is called twice is then given up once. */
TUTTI_TEST(layers_that_are_called_twice_in_no_model)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_job_fail(job, tutti_fail(TUTTI_INVALID, "a mistake"));
    tutti_model *m = tutti_functional(job);
    tutti_layer *table = tutti_embedding(5, 3, .name = "words");
    tutti_sym x = tutti_call(table, tutti_input(m, "x", TUTTI_I32, 2));
    tutti_output(m, "y", tutti_call(table, x));
    tutti_layer_release(table);
    CHECK_INT(tutti_close(job), 1);
}
