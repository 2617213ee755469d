/* generate_test.c: answers step by step against answers to the whole sequence; drawing tokens. */
#include <math.h>
#include <string.h>

#include "base/test.h"
#include "tutti/generate.h"
#include "tutti/tutti.h"

enum { WORDS = 17, LENGTH = 12, WIDTH = 16 };

static tutti_model *make(tutti_job *job, bool fused, const char *precision)
{
    tutti_model *m = tutti_functional(job, .precision = precision);
    tutti_layer *words = tutti_embedding(WORDS, WIDTH, .embeddings_initializer = "normal(0,0.5)");
    tutti_sym x = tutti_call(words, tutti_input(m, "tokens", TUTTI_I32, TUTTI_ANY));
    x = tutti_call(tutti_position_embedding(LENGTH, .initializer = "normal(0,0.5)"), x);
    x = tutti_call(tutti_dropout(0.1), x);
    for (int i = 0; i < 2; i++)
        x = tutti_call(tutti_transformer_block(4, .use_causal_mask = true, .normalize_first = true,
                                               .kernel_initializer = "normal(0,0.3)",
                                               .activation = TUTTI_GELU_TANH, .fused_qkv = fused),
                       x);
    x = tutti_call(tutti_layer_norm(.epsilon = 1e-5), x);
    tutti_output(m, "scores", tutti_call(words, x));
    CHECK_OK((tutti_build)(m, 0, NULL));
    return m;
}

static tutti_tensor *tokens(int64_t batch, int64_t first, int64_t count)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 2, (int64_t[]){batch, count}, &t));
    for (int64_t i = 0; i < batch * count; i++)
        tutti_tensor_set_int(t, i, (i / count * 5 + (first + i % count) * 7 + 3) % WORDS);
    return t;
}

/* The scores after `count` tokens that the whole model gives, f32 [batch, WORDS]. */
static tutti_tensor *whole(tutti_model *m, int64_t batch, int64_t count)
{
    tutti_tensor *x = tokens(batch, 0, count), *all, *last;
    CHECK_OK(tutti_predict_on_batch(m, 1, &x, 1, &all));
    CHECK_OK(tutti_tensor_slice(all, 1, count - 1, 1, 1, &last));
    tutti_tensor_release(x);
    tutti_tensor_release(all);
    return last;
}

static void expect_near(const tutti_tensor *a, const tutti_tensor *b, double tolerance)
{
    CHECK_INT(tutti_tensor_count(a), tutti_tensor_count(b));
    for (int64_t i = 0; i < tutti_tensor_count(a); i++)
        CHECK_NEAR(tutti_tensor_get(a, i), tutti_tensor_get(b, i), tolerance);
}

/* Gives the decoder the next tokens and compares with what the whole model says. */
static void expect_step(tutti_decoder *d, tutti_model *m, int64_t batch, int64_t count, double near)
{
    tutti_tensor *x = tokens(batch, tutti_decoder_position(d), count), *y, *expected;
    CHECK_OK(tutti_decoder_step(d, x, &y));
    CHECK_INT(tutti_tensor_rank(y), 2);
    expected = whole(m, batch, tutti_decoder_position(d));
    expect_near(y, expected, near);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    tutti_tensor_release(expected);
}

static void expect_decoder(bool fused, const char *precision, int64_t batch, double near)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make(job, fused, precision);
    tutti_decoder *d;
    CHECK_OK(tutti_decoder_open(&d, m, LENGTH, .batch = batch));
    expect_step(d, m, batch, 4, near);
    for (int i = 0; i < 4; i++)
        expect_step(d, m, batch, 1, near);
    expect_step(d, m, batch, 3, near);
    CHECK_OK(tutti_decoder_rewind(d, 2));
    expect_step(d, m, batch, 1, near);
    CHECK_OK(tutti_decoder_rewind(d, 0));
    for (int i = 0; i < LENGTH; i++)
        expect_step(d, m, batch, 1, near);
    tutti_decoder_close(d);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(decoder_answers_as_the_whole_model)
{
    expect_decoder(false, "f32", 1, 2e-5);
    expect_decoder(true, "f32", 3, 2e-5);
    expect_decoder(true, "bf16", 2, 0.4);
}

TUTTI_TEST(decoder_keeps_more_programs_than_it_has_room_for)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_functional(job);
    tutti_sym x = tutti_input(m, "x", TUTTI_F32, TUTTI_ANY, 8);
    x = tutti_call(tutti_transformer_block(2, .use_causal_mask = true), x);
    tutti_output(m, "y", x);
    CHECK_OK((tutti_build)(m, 0, NULL));
    tutti_decoder *d;
    tutti_tensor *all, *answer, *y;
    enum { MOST = 20, ALL = MOST * (MOST + 1) / 2 };
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 3, (int64_t[]){1, ALL, 8}, &all));
    for (int64_t i = 0; i < ALL * 8; i++)
        tutti_tensor_set(all, i, sin((double)i));
    CHECK_OK(tutti_predict_on_batch(m, 1, &all, 1, &answer));
    CHECK_OK(tutti_decoder_open(&d, m, ALL));
    for (int64_t steps = 1; steps <= MOST; steps++) {
        tutti_tensor *some, *part;
        CHECK_OK(tutti_tensor_slice(all, 1, tutti_decoder_position(d), steps, 1, &some));
        CHECK_OK(tutti_decoder_step(d, some, &y));
        CHECK_OK(tutti_tensor_slice(answer, 1, tutti_decoder_position(d) - 1, 1, 1, &part));
        expect_near(y, part, 1e-5);
        tutti_tensor_release(some);
        tutti_tensor_release(part);
        tutti_tensor_release(y);
    }
    tutti_decoder_close(d);
    tutti_tensor_release(all);
    tutti_tensor_release(answer);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(decoder_says_what_it_cannot_take)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make(job, true, "f32");
    tutti_decoder *d;
    tutti_tensor *x = tokens(1, 0, LENGTH), *more = tokens(1, 0, 1), *two = tokens(2, 0, 1), *y;
    CHECK_STATUS(tutti_decoder_open(&d, m, 0), TUTTI_INVALID);
    CHECK_STATUS(tutti_decoder_open(&d, m, LENGTH + 1), TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(),
                   "of 13 steps are asked for, model 'model' has positions for 12");
    CHECK_OK(tutti_decoder_open(&d, m, LENGTH));
    CHECK_STATUS(tutti_decoder_step(d, two, &y), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "takes i32[1,?], it is given i32[2,1]");
    CHECK_OK(tutti_decoder_step(d, x, &y));
    tutti_tensor_release(y);
    CHECK_STATUS(tutti_decoder_step(d, more, &y), TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(), "would have 13 steps, the decoder was opened for 12");
    CHECK_STATUS(tutti_decoder_rewind(d, 13), TUTTI_OUT_OF_RANGE);
    tutti_decoder_close(d);
    CHECK_OK(tutti_decoder_open(&d, m, 2));
    CHECK_STATUS(tutti_decoder_step(d, x, &y), TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(), "the decoder was opened for 2");
    /* A token that the table does not have changes nothing. */
    tutti_tensor_set_int(more, 0, WORDS);
    CHECK(tutti_decoder_step(d, more, &y) != TUTTI_OK);
    CHECK_INT(tutti_decoder_position(d), 0);
    expect_step(d, m, 1, 2, 2e-5);
    tutti_decoder_close(d);
    tutti_tensor_release(x);
    tutti_tensor_release(more);
    tutti_tensor_release(two);
    CHECK_INT(tutti_close(job), 0);
}

/* A model of words and this layer between them cannot answer step by step. */
static void expect_no_decoder(tutti_layer *layer, const char *says)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_functional(job);
    tutti_sym x = tutti_call(tutti_embedding(5, 8), tutti_input(m, "x", TUTTI_I32, 6));
    tutti_output(m, "y", tutti_call(layer, x));
    CHECK_OK((tutti_build)(m, 0, NULL));
    tutti_decoder *d;
    CHECK(tutti_decoder_open(&d, m, 6) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), says);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(decoder_refuses_layers_that_look_ahead)
{
    expect_no_decoder(tutti_transformer_block(2), "sees later steps");
    expect_no_decoder(tutti_multi_head_attention(2, 4), "sees later steps");
    expect_no_decoder(tutti_lstm(8, .return_sequences = true), "looks at other steps than its own");
    expect_no_decoder(tutti_conv1d(8, 3, .padding = "causal"), "looks at other steps than its own");
}

TUTTI_TEST(decoder_refuses_operators_that_join_steps)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = tutti_functional(job);
    tutti_sym x = tutti_call(tutti_embedding(5, 8), tutti_input(m, "x", TUTTI_I32, 6));
    tutti_output(m, "y", tutti_reverse(tutti_mul(x, 2), 1));
    CHECK_OK((tutti_build)(m, 0, NULL));
    tutti_decoder *d;
    CHECK_STATUS(tutti_decoder_open(&d, m, 6), TUTTI_UNSUPPORTED);
    CHECK_CONTAINS(tutti_error_message(), "may join steps");
    CHECK_INT(tutti_close(job), 0);
}

/* ---- sampling ---- */

static int64_t drawn(const float *logits, int64_t count, uint64_t number, double temperature,
                     int64_t top_k, double top_p)
{
    int64_t token;
    CHECK_OK(tutti_sample_token(count, logits, number,
                                TUTTI_OPTIONS(tutti_sample_options, .temperature = temperature,
                                              .top_k = top_k, .top_p = top_p, .seed = 5),
                                &token));
    return token;
}

TUTTI_TEST(sample_draws_by_probability)
{
    enum { N = 40000 };
    static const float logits[] = {0, 1, 2, -INFINITY, 3, NAN, 2};
    const double temperatures[] = {0, 0.5, 2};
    for (int t = 0; t < 3; t++) {
        double sum = 0, temperature = temperatures[t] > 0 ? temperatures[t] : 1;
        int64_t counts[7] = {0};
        for (uint64_t i = 0; i < N; i++)
            counts[drawn(logits, 7, i, temperatures[t], 0, 0)]++;
        for (int i = 0; i < 7; i++)
            sum += isfinite(logits[i]) ? exp(logits[i] / temperature) : 0;
        for (int i = 0; i < 7; i++)
            CHECK_NEAR((double)counts[i] / N,
                       isfinite(logits[i]) ? exp(logits[i] / temperature) / sum : 0, 0.01);
    }
}

/* Which of 4 tokens with p = 0.1 0.2 0.3 0.4 are drawn, as bits. */
static int seen(int64_t top_k, double top_p)
{
    const float logits[] = {logf(0.1f), logf(0.2f), logf(0.3f), logf(0.4f)};
    int bits = 0;
    for (uint64_t i = 0; i < 2000; i++)
        bits |= 1 << drawn(logits, 4, i, 1, top_k, top_p);
    return bits;
}

TUTTI_TEST(sample_takes_the_most_likely_ones)
{
    CHECK_INT(seen(0, 0), 15);
    CHECK_INT(seen(1, 0), 8);
    CHECK_INT(seen(2, 0), 12);
    CHECK_INT(seen(9, 0), 15);
    CHECK_INT(seen(0, 0.39), 8);
    CHECK_INT(seen(0, 0.41), 12);
    CHECK_INT(seen(0, 0.69), 12);
    CHECK_INT(seen(0, 0.71), 14);
    CHECK_INT(seen(0, 1), 15);
    CHECK_INT(seen(2, 0.5), 8); /* 0.4 of 0.7 is more than half */
    CHECK_INT(seen(2, 0.6), 12);
    CHECK_INT(seen(3, 0.43), 8);
    const float logits[] = {1, 3, 3, 0};
    CHECK_INT(drawn(logits, 4, 0, -0.0, 0, 0), 1);
    CHECK_INT(drawn(logits, 4, 7, 1, 1, 0), 1);
}

TUTTI_TEST(sample_says_what_is_wrong)
{
    int64_t token;
    const float none[] = {NAN, -INFINITY}, some[] = {-INFINITY, INFINITY, 0};
    CHECK_STATUS(tutti_sample_token(2, none, 0, NULL, &token), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "none of 2 scores is a number");
    CHECK_STATUS(tutti_sample_token(0, some, 0, NULL, &token), TUTTI_INVALID);
    CHECK_STATUS(tutti_sample_token(3, some, 0,
                                    TUTTI_OPTIONS(tutti_sample_options, .temperature = -1), &token),
                 TUTTI_INVALID);
    CHECK_STATUS(
        tutti_sample_token(3, some, 0, TUTTI_OPTIONS(tutti_sample_options, .top_p = 2), &token),
        TUTTI_INVALID);
    CHECK_INT(drawn(some, 3, 3, 1, 0, 0), 1);
    CHECK_INT(drawn(some, 3, 3, 1, 2, 0.5), 1);
}

/* ---- generating ---- */

static bool count_calls(void *context, int64_t count, const int32_t *made)
{
    CHECK(made[0] >= 0 && made[0] < WORDS && count == 2);
    return ++*(int *)context < 5;
}

TUTTI_TEST(generate_is_the_same_with_and_without_the_cache)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make(job, true, "f32");
    tutti_tensor *prompt = tokens(2, 0, 3), *cached, *plain, *other;
    tutti_generate_report report;
    CHECK_OK(tutti_generate(m, prompt, LENGTH - 3, &cached, .seed = 3, .report = &report));
    CHECK_OK(tutti_generate(m, prompt, LENGTH - 3, &plain, .seed = 3, .no_cache = true));
    CHECK_OK(tutti_generate(m, prompt, LENGTH - 3, &other, .seed = 4));
    CHECK_INT(tutti_tensor_dims(cached)[0], 2);
    CHECK_INT(tutti_tensor_dims(cached)[1], LENGTH);
    for (int i = 0; i < 6; i++)
        CHECK_INT(tutti_tensor_get_int(cached, i / 3 * LENGTH + i % 3),
                  tutti_tensor_get_int(prompt, i));
    CHECK(tutti_tensor_same(cached, plain));
    CHECK(!tutti_tensor_same(cached, other));
    CHECK_INT(report.prompt, 3);
    CHECK_INT(report.tokens, LENGTH - 3);
    CHECK(report.prompt_seconds > 0 && report.seconds > 0);
    tutti_tensor_release(plain);
    int calls = 0;
    CHECK_OK(tutti_generate(m, prompt, LENGTH - 3, &plain, .each = count_calls, .context = &calls));
    CHECK_INT(tutti_tensor_dims(plain)[1], 3 + 5);
    tutti_tensor_release(plain);
    tutti_tensor_release(other);
    tutti_tensor_release(cached);
    tutti_tensor_release(prompt);
    CHECK_INT(tutti_close(job), 0);
}

TUTTI_TEST(generate_ends_at_the_stop)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make(job, false, "f32");
    tutti_tensor *prompt, *all, *again;
    CHECK_OK(tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){2}, (int64_t[]){1, 2}, &prompt));
    CHECK_OK(tutti_generate(m, prompt, 8, &all, .temperature = TUTTI_ZERO));
    CHECK_INT(tutti_tensor_rank(all), 1);
    int64_t third = tutti_tensor_get_int(all, 4), first = 2;
    while (tutti_tensor_get_int(all, first) != third)
        first++;
    CHECK_OK(tutti_generate(m, prompt, 8, &again, .temperature = TUTTI_ZERO, .has_stop = true,
                            .stop = third));
    CHECK_INT(tutti_tensor_count(again), first + 1);
    tutti_tensor_release(all);
    tutti_tensor_release(again);
    CHECK_STATUS(tutti_generate(m, prompt, LENGTH, &all), TUTTI_OUT_OF_RANGE);
    CHECK_CONTAINS(tutti_error_message(), "has positions for 12");
    CHECK_STATUS(tutti_generate(m, prompt, -1, &all), TUTTI_INVALID);
    tutti_tensor_release(prompt);
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, (int64_t[]){0}, &prompt));
    CHECK_STATUS(tutti_generate(m, prompt, 1, &all), TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "the prompt is i32[0]; needs integers");
    tutti_tensor_release(prompt);
    CHECK_INT(tutti_close(job), 0);
}

/* Training goes on while a decoder is open: it answers as the model did when it was opened. */
TUTTI_TEST(decoder_keeps_the_weights_it_was_opened_with)
{
    tutti_job *job = tutti_open(NULL, NULL);
    tutti_model *m = make(job, true, "f32");
    tutti_decoder *d;
    tutti_tensor *before = whole(m, 1, 4), *x = tokens(1, 0, 4), *target, *y, *after;
    CHECK_OK(tutti_decoder_open(&d, m, LENGTH));
    tutti_compile(m, .optimizer = tutti_adam(.learning_rate = 0.1),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true));
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 2, (int64_t[]){1, 4}, &target));
    CHECK_OK(tutti_train_on_batch(m, 2, (tutti_tensor *[]){x, target}, NULL));
    CHECK_OK(tutti_train_on_batch(m, 2, (tutti_tensor *[]){x, target}, NULL));
    after = whole(m, 1, 4);
    CHECK(!tutti_tensor_same(before, after));
    CHECK_OK(tutti_decoder_step(d, x, &y));
    expect_near(y, before, 2e-5);
    tutti_decoder_close(d);
    tutti_tensor_release(before);
    tutti_tensor_release(after);
    tutti_tensor_release(target);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    CHECK_INT(tutti_close(job), 0);
}
