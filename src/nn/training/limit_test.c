/* limit_test.c: steps under a limit of memory: within it, to the same bits, or refused in words. */
#include <stdio.h>
#include <string.h>

#include "base/job.h"
#include "base/params.h"
#include "base/test.h"
#include "nn/model/model.h"
#include "tutti/tutti.h"

enum { STEPS = 2 };

typedef struct outcome {
    tutti_status status;
    size_t bytes, runs;
    double losses[STEPS], weights;
    char note[TUTTI_LIMIT_NOTE];
} outcome;

static tutti_model *transformer(tutti_job *job)
{
    return tutti_sequential(job, tutti_input_shape(12, 24), tutti_dense(32),
                            tutti_transformer_block(4, .dropout = 0.1, .normalize_first = true),
                            tutti_transformer_block(4, .use_causal_mask = true),
                            tutti_transformer_block(4), tutti_transformer_block(4),
                            tutti_global_average_pool1d(), tutti_dense(5));
}

static double sum_of_weights(tutti_model *m)
{
    double sum = 0;
    tutti_weight_info info;
    for (int i = 0; tutti_weight_at(m, i, &info) == TUTTI_OK; i++) {
        tutti_tensor *value;
        CHECK_OK(tutti_get_weight(m, info.name, &value));
        for (int64_t k = 0; k < tutti_tensor_count(value); k++)
            sum = sum * 1.0001 + tutti_tensor_get(value, k);
        tutti_tensor_release(value);
    }
    return sum;
}

/* `flag`: as --set memory= has it, or NULL. */
static outcome train(int64_t limit, const char *flag)
{
    CHECK_OK(tutti__param_set("THREADS", "1")); /* more of them need more workspace */
    outcome r = {0};
    char setting[64];
    snprintf(setting, sizeof setting, "memory=%s", flag ? flag : "");
    char *flags[] = {(char *)"test", (char *)"--set", setting, NULL}, **argv = flags;
    int argc = flag ? 3 : 1;
    tutti_job *job = tutti_open(&argc, &argv);
    tutti_model *m = transformer(job);
    tutti_tensor *pair[2];
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 3, (int64_t[]){16, 12, 24}, &pair[0]));
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){16}, &pair[1]));
    for (int64_t i = 0; i < tutti_tensor_count(pair[0]); i++)
        tutti_tensor_set(pair[0], i, (double)(i * 7 % 23) / 11 - 1);
    for (int64_t i = 0; i < 16; i++)
        tutti_tensor_set_int(pair[1], i, i * 3 % 5);
    if (m)
        tutti_compile(m, .loss = tutti_sparse_cross_entropy(.from_logits = true),
                      .memory_limit = limit);
    for (int i = 0; m && i < STEPS && r.status == TUTTI_OK; i++) {
        tutti_logs logs = {0};
        r.status = tutti_train_on_batch(m, 2, pair, &logs);
        r.losses[i] = r.status == TUTTI_OK ? tutti_logs_get(&logs, "loss") : 0;
    }
    if (m && r.status == TUTTI_OK) {
        tutti_engine_stats stats;
        tutti__engine_stats(m->engine, &stats);
        r.bytes = stats.arena_bytes;
        memcpy(r.note, stats.note, sizeof r.note);
        r.weights = sum_of_weights(m);
        CHECK((stats.recomputed_flops > 0) == (stats.note[0] != 0));
        CHECK(stats.recomputed_flops <= 0.5 * stats.flops);
    }
    r.status = m ? r.status : tutti_job_check(job);
    tutti_tensor_release(pair[0]);
    tutti_tensor_release(pair[1]);
    tutti__job_discard(job);
    return r;
}

static void check_kept(const char *device)
{
    CHECK_OK(tutti__param_set("DEVICE", device));
    outcome plain = train(0, NULL);
    CHECK_OK(plain.status);
    CHECK_STR(plain.note, "");
    for (int tenths = 9; tenths >= 6; tenths -= 3) {
        size_t limit = plain.bytes / 10 * (size_t)tenths;
        outcome r = train((int64_t)limit, NULL);
        CHECK_OK(r.status);
        CHECK(r.bytes <= limit);
        CHECK(memcmp(r.losses, plain.losses, sizeof r.losses) == 0);
        CHECK(memcmp(&r.weights, &plain.weights, sizeof r.weights) == 0);
        CHECK_CONTAINS(r.note, "computed again");
        CHECK_CONTAINS(r.note, "more FLOPs");
    }
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

TUTTI_TEST(a_limit_of_memory_is_kept_and_changes_no_bit)
{
    check_kept("cpu:0"); /* whose arena is planned */
}

TUTTI_TEST(a_limit_of_memory_is_kept_by_a_device_without_an_arena)
{
    check_kept("whole:0");
}

TUTTI_TEST(a_limit_of_memory_that_is_wide_changes_nothing)
{
    outcome plain = train(0, NULL), wide = train(1 << 30, NULL);
    CHECK_OK(wide.status);
    CHECK_INT(wide.bytes, plain.bytes);
    CHECK_STR(wide.note, "");
}

TUTTI_TEST(a_limit_of_memory_comes_from_the_command_line)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* whose arena is planned */
    outcome plain = train(0, NULL);
    char text[32];
    snprintf(text, sizeof text, "%.3fMiB", 0.7 * (double)plain.bytes / (1 << 20));
    outcome r = train(0, text);
    CHECK_OK(r.status);
    CHECK((double)r.bytes <= 0.701 * (double)plain.bytes);
    CHECK_STATUS(train(0, "much").status, TUTTI_INVALID);
    CHECK_STATUS(train(-5, NULL).status, TUTTI_INVALID);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

TUTTI_TEST(a_limit_of_memory_that_cannot_be_kept_is_refused_in_words)
{
    static const char *const devices[] = {"cpu:0", "whole:0"};
    for (size_t i = 0; i < TUTTI_COUNT(devices); i++) {
        CHECK_OK(tutti__param_set("DEVICE", devices[i]));
        CHECK_STATUS(train(100000, NULL).status, TUTTI_TOO_LARGE);
        CHECK_CONTAINS(tutti_error_message(), "the limit is 0.10 MiB");
        CHECK_CONTAINS(tutti_error_message(), devices[i]);
        CHECK_CONTAINS(tutti_error_message(), "MiB at least when some are computed again");
        CHECK_CONTAINS(tutti_error_message(), "make the batch smaller");
        CHECK_STATUS(train(0, "1KiB").status, TUTTI_TOO_LARGE);
        CHECK_CONTAINS(tutti_error_message(), "the limit is 1.00 KiB");
    }
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}

/* Of one's own graph; runs without gradients keep nothing for them. */
TUTTI_TEST(a_limit_of_memory_holds_for_gradients_in_a_session)
{
    CHECK_OK(tutti__param_set("DEVICE", "cpu:0")); /* whose arena is planned */
    tutti_graph *graph;
    tutti_session *session;
    tutti_tensor *x, *y;
    CHECK_OK(tutti_graph_create(&graph));
    tutti_sym in = tutti_placeholder(graph, TUTTI_F32, 64, 64), out = in;
    for (int i = 0; i < 4; i++)
        out = tutti_sin(tutti_matmul(tutti_exp(out), tutti_tanh(out)));
    out = tutti_sum(out);
    tutti_sym grad = tutti_gradient(out, in);
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){64, 64}, &x));
    CHECK_OK(tutti_session_open(&session, graph, .memory_limit = 1024));
    CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({in, x}), .fetch = TUTTI_FETCH({out, &y})));
    tutti_tensor_release(y);
    CHECK_STATUS(tutti_run(session, .feed = TUTTI_FEED({in, x}), .fetch = TUTTI_FETCH({grad, &y})),
                 TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), "make the batch smaller");
    tutti_session_close(session);
    CHECK_OK(tutti_session_open(&session, graph, .memory_limit = 16 * 64 * 64 * 4));
    CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({in, x}), .fetch = TUTTI_FETCH({grad, &y})));
    tutti_tensor_release(y);
    tutti_tensor_release(x);
    tutti_session_close(session);
    tutti_graph_destroy(graph);
    CHECK_OK(tutti__param_set("DEVICE", NULL));
}
