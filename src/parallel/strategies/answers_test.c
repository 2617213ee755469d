/* answers_test.c: what comes out of a spread job: values of any operator over the batch, random
 * numbers, metrics, predictions and custom loops, against one device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "tutti/tutti.h"

enum { FEATURES = 3 };

static const char *const teams[] = {"cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2", "far:0,far:1",
                                    "cpu:0,far:0,whole:0"};

static tutti_strategy *mirrored(const char *devices)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    tutti_strategy *strategy = tutti_strategy_mirrored(.devices = devices);
    CHECK_OK(tutti_strategy_check(strategy));
    return strategy;
}

static tutti_tensor *rows_of(int64_t rows)
{
    tutti_tensor *x;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, FEATURES}, &x));
    for (int64_t i = 0; i < rows * FEATURES; i++)
        tutti_tensor_set(x, i, sin(2.1 * (double)i + 0.3));
    return x;
}

/* ---- operators that look across rows ---- */

/* f(x), x f32[batch, FEATURES] */
typedef tutti_sym build_answer(tutti_sym x);

static tutti_sym same(tutti_sym x)
{
    return tutti_mul(x, 1);
}
static tutti_sym sum_all(tutti_sym x)
{
    return tutti_sum(x);
}
static tutti_sym mean_rows(tutti_sym x)
{
    return tutti_mean(x, .axes = TUTTI_AXES(0));
}
static tutti_sym mean_features(tutti_sym x)
{
    return tutti_mean(x, .axes = TUTTI_AXES(1));
}
static tutti_sym greatest(tutti_sym x)
{
    return tutti_max(x, .axes = TUTTI_AXES(0));
}
static tutti_sym least(tutti_sym x)
{
    return tutti_min(x);
}
static tutti_sym product(tutti_sym x)
{
    return tutti_prod(x, .axes = TUTTI_AXES(0));
}
static tutti_sym spread_of(tutti_sym x)
{
    return tutti_variance(x, .axes = TUTTI_AXES(0));
}
static tutti_sym log_sum(tutti_sym x)
{
    return tutti_logsumexp(x, .axes = TUTTI_AXES(0));
}
static tutti_sym where_greatest(tutti_sym x)
{
    return tutti_argmax(x, 0);
}
static tutti_sym running_sum(tutti_sym x)
{
    return tutti_cumsum(x, 0);
}
static tutti_sym turned(tutti_sym x)
{
    return tutti_transpose(x);
}
static tutti_sym flat(tutti_sym x)
{
    return tutti_reshape(x, -1);
}
static tutti_sym backwards(tutti_sym x)
{
    return tutti_reverse(x, 0);
}
static tutti_sym rolled(tutti_sym x)
{
    return tutti_roll(x, 1, 0);
}
static tutti_sym doubled(tutti_sym x)
{
    return tutti_concatenate(TUTTI_SYMS(x, x));
}
static tutti_sym first_row(tutti_sym x)
{
    return tutti_slice_axis(x, 0, 0, 1);
}
static tutti_sym gram(tutti_sym x)
{
    return tutti_matmul(x, x, .transpose_a = true);
}
static tutti_sym likeness(tutti_sym x)
{
    return tutti_matmul(x, x, .transpose_b = true);
}
static tutti_sym centred(tutti_sym x)
{
    return tutti_sub(x, tutti_mean(x, .axes = TUTTI_AXES(0), .keepdims = true));
}
static tutti_sym whitened(tutti_sym x)
{
    return tutti_softmax(tutti_transpose(x));
}
static tutti_sym length(tutti_sym x)
{
    return tutti_norm(x);
}
static tutti_sym count(tutti_sym x)
{
    return tutti_sum(tutti_ones_like(x));
}
static tutti_sym ranked(tutti_sym x)
{
    return tutti_top_k(tutti_transpose(x), 1);
}
/* Two roads: a mean over rows, used by rows again. */
static tutti_sym scores(tutti_sym x)
{
    return tutti_matmul(tutti_tanh(centred(x)), gram(x));
}
/* A sum of parts and what the replicas met for, which only the first of them adds. */
static tutti_sym half_met(tutti_sym x)
{
    return tutti_add(tutti_exp(tutti_mean(x)), tutti_mean(tutti_square(x)));
}

static tutti_sym dropped(tutti_sym x)
{
    return tutti_nn_dropout(tutti_ones_like(x), 0.5);
}

/* Rows of which nobody knows how many there are. */
static tutti_sym chosen(tutti_sym x)
{
    tutti_sym first = tutti_reshape(tutti_slice_axis(x, 1, 0, 1), -1);
    tutti_sym which = tutti_nonzero(tutti_greater(first, 0));
    return tutti_gather(x, tutti_reshape(which, -1), 0);
}
static tutti_sym chosen_softmax(tutti_sym x)
{
    return tutti_softmax(chosen(x));
}
static tutti_sym chosen_dropped(tutti_sym x)
{
    return tutti_nn_dropout(tutti_ones_like(chosen(x)), 0.5);
}
static tutti_sym attention_to_chosen(tutti_sym x)
{
    tutti_sym rows = chosen(x);
    return tutti_matmul(tutti_softmax(tutti_matmul(x, rows, .transpose_b = true)), rows);
}
static tutti_sym some_large(tutti_sym x)
{
    tutti_sym large = tutti_greater(x, 1.4);
    return tutti_cast(tutti_any(large, .axes = TUTTI_AXES(0)), TUTTI_F32);
}
static tutti_sym all_small(tutti_sym x)
{
    tutti_sym small = tutti_less(x, 1.4);
    return tutti_cast(tutti_all(small), TUTTI_F32);
}

static const struct answer {
    const char *name;
    build_answer *build;
} answers[] = {
    {"same", same},
    {"sum_all", sum_all},
    {"mean_rows", mean_rows},
    {"mean_features", mean_features},
    {"greatest", greatest},
    {"least", least},
    {"product", product},
    {"variance", spread_of},
    {"logsumexp", log_sum},
    {"argmax", where_greatest},
    {"cumsum", running_sum},
    {"transpose", turned},
    {"flat", flat},
    {"reverse", backwards},
    {"roll", rolled},
    {"concat", doubled},
    {"first_row", first_row},
    {"gram", gram},
    {"likeness", likeness},
    {"centred", centred},
    {"softmax over rows", whitened},
    {"norm", length},
    {"count", count},
    {"top_k", ranked},
    {"scores", scores},
    {"dropout", dropped},
    {"sum of parts and a whole that was met for", half_met},
    {"rows by mask", chosen},
    {"softmax of rows by mask", chosen_softmax},
    {"dropout of rows by mask", chosen_dropped},
    {"attention to rows by mask", attention_to_chosen},
    {"any", some_large},
    {"all", all_small},
};

/* The answer, and the gradient of the sum of its squares by x and by a factor w of x. */
typedef struct question {
    tutti_tensor *values[3];
    bool differentiable;
} question;

static question ask(const struct answer *answer, tutti_strategy *strategy, int64_t rows)
{
    question q = {.differentiable = strcmp(answer->name, "argmax") != 0};
    tutti_graph *g;
    tutti_session *session;
    CHECK_OK(tutti_graph_create(&g));
    CHECK_OK(tutti_session_open(&session, g, .strategy = strategy, .deadline_seconds = 20));
    tutti_sym x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, FEATURES));
    tutti_sym w = tutti_variable(g, tutti_full(1.5, FEATURES), .name = "w");
    tutti_sym y = answer->build(tutti_mul(x, w));
    tutti_tensor *input = rows_of(rows);
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti_run(session, .target = tutti_initialize_variables(g)));
    if (q.differentiable) {
        tutti_grad grads[2];
        tutti_gradients(tutti_sum(tutti_square(y)), 2, (tutti_sym[]){x, w}, grads);
        q.differentiable = tutti_grad_ok(grads[0]) && tutti_grad_ok(grads[1]);
        if (q.differentiable)
            CHECK_OK(
                tutti_run(session, .feed = TUTTI_FEED({x, input}),
                          .fetch = TUTTI_FETCH({y, &q.values[0]}, {grads[0].value, &q.values[1]},
                                               {grads[1].value, &q.values[2]})));
    }
    if (!q.differentiable)
        CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({x, input}),
                           .fetch = TUTTI_FETCH({y, &q.values[0]})));
    tutti_tensor_release(input);
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return q;
}

static void check_answer_of(const struct answer *answer, const char *devices, int64_t rows,
                            tutti_strategy *strategy)
{
    question one = ask(answer, NULL, rows), many = ask(answer, strategy, rows);
    for (int i = 0; i < (one.differentiable ? 3 : 1); i++) {
        int64_t size = tutti_tensor_count(one.values[i]);
        if (tutti_tensor_count(many.values[i]) != size)
            tutti__test_fail(__FILE__, __LINE__, "%s on %s, %d rows, value %d: %d elements, not %d",
                             answer->name, devices, (int)rows, i,
                             (int)tutti_tensor_count(many.values[i]), (int)size);
        for (int64_t k = 0; k < size; k++) {
            double a = tutti_tensor_get(one.values[i], k), b = tutti_tensor_get(many.values[i], k);
            if (!(fabs(a - b) <= 2e-6 * (1 + fabs(a))))
                tutti__test_fail(__FILE__, __LINE__,
                                 "%s on %s, %d rows, value %d at %d: %g, not %g", answer->name,
                                 devices, (int)rows, i, (int)k, b, a);
        }
        tutti_tensor_release(one.values[i]);
        tutti_tensor_release(many.values[i]);
    }
    CHECK_OK(tutti_strategy_close(strategy));
}

static void check_answer(const struct answer *answer, const char *devices, int64_t rows)
{
    check_answer_of(answer, devices, rows, mirrored(devices));
}

TUTTI_TEST(any_operator_sees_the_global_batch)
{
    for (size_t i = 0; i < TUTTI_COUNT(answers); i++)
        for (size_t k = 0; k < TUTTI_COUNT(teams); k++)
            if (!strstr(answers[i].name, "by mask") || !strstr(teams[k], "whole"))
                check_answer(&answers[i], teams[k], 7); /* `whole` has no shapes by data */
}

/* Replicas without rows: sums of nothing are 0, maxima of nothing do not count. */
TUTTI_TEST(operators_over_fewer_rows_than_replicas)
{
    for (size_t i = 0; i < TUTTI_COUNT(answers); i++) {
        check_answer(&answers[i], teams[0], 1);
        check_answer(&answers[i], teams[1], 2);
    }
}

/* Features are as many as rows: they could be cut like these. Also shard by shard, on one device
 * and on several. */
TUTTI_TEST(operators_over_as_many_rows_as_features)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    for (size_t i = 0; i < TUTTI_COUNT(answers); i++) {
        check_answer(&answers[i], teams[0], FEATURES);
        check_answer_of(&answers[i], "cpu:0", FEATURES,
                        tutti_strategy_one_device(.devices = "cpu:0", .deterministic = true));
        check_answer_of(&answers[i], teams[0], FEATURES,
                        tutti_strategy_mirrored(.devices = teams[0], .deterministic = true));
        check_answer_of(&answers[i], teams[1], 7,
                        tutti_strategy_mirrored(.devices = teams[1], .deterministic = true));
    }
}

/* ---- metrics and predictions ---- */

typedef struct asked {
    tutti_job *job; /* which the logs' names belong to */
    tutti_strategy *strategy;
    tutti_logs logs;
    tutti_tensor *guesses;
} asked;

/* Answers of a model, as it was drawn, for rows whose truth alternates oddly. */
static asked ask_model(const char *devices, const char *metrics, int64_t rows, int64_t batch)
{
    asked result = {.job = tutti_open(NULL, NULL), .strategy = devices ? mirrored(devices) : NULL};
    tutti_job *job = result.job;
    tutti_tensor *x = rows_of(rows), *y;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, 1}, &y));
    for (int64_t i = 0; i < rows; i++)
        tutti_tensor_set(y, i, i % 3 == 0 || i % 5 == 1);
    tutti_dataset *data = tutti_batch(tutti_from_tensor_slices(job, x, y), batch);
    TUTTI_WITH_STRATEGY(result.strategy)
    {
        tutti_model *m = tutti_sequential(job, tutti_input_shape(FEATURES),
                                          tutti_dense(1, .activation = TUTTI_SIGMOID));
        tutti_compile(m, .optimizer = tutti_sgd(0.1), .loss = tutti_binary_cross_entropy(),
                      .metrics = metrics);
        CHECK_OK(tutti_evaluate(m, data, &result.logs, .quiet = true));
        CHECK_OK(tutti_predict(m, data, 1, &result.guesses));
    }
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return result;
}

static void close_asked(asked *a)
{
    tutti_tensor_release(a->guesses);
    CHECK_INT(tutti_close(a->job), 0);
    CHECK_OK(tutti_strategy_close(a->strategy));
}

static void check_model(const char *devices, int64_t rows, int64_t batch)
{
    static const char metrics[] = "accuracy,auc,precision,recall,f1,mae,mse,rmse";
    asked one = ask_model(NULL, metrics, rows, batch),
          many = ask_model(devices, metrics, rows, batch);
    CHECK_INT(many.logs.count, one.logs.count);
    CHECK_INT(one.logs.count, 9);
    for (int i = 0; i < one.logs.count; i++) {
        CHECK_STR(many.logs.items[i].name, one.logs.items[i].name);
        CHECK_NEAR(many.logs.items[i].value, one.logs.items[i].value, 1e-6);
    }
    CHECK_INT(tutti_tensor_dims(many.guesses)[0], rows);
    for (int64_t i = 0; i < rows; i++)
        CHECK_NEAR(tutti_tensor_get(many.guesses, i), tutti_tensor_get(one.guesses, i), 1e-6);
    close_asked(&one);
    close_asked(&many);
}

TUTTI_TEST(evaluate_and_predict_equal_one_device)
{
    for (size_t i = 0; i < TUTTI_COUNT(teams); i++) {
        check_model(teams[i], 17, 5);
        check_model(teams[i], 9, 4); /* the last batch has one row */
        check_model(teams[i], 2, 8);
    }
}

/* An accuracy is a count by a count: no mean of means. */
TUTTI_TEST(an_accuracy_is_exact)
{
    for (size_t i = 0; i < TUTTI_COUNT(teams); i++) {
        asked a = ask_model(teams[i], "accuracy", 13, 4);
        int right = 0;
        for (int64_t row = 0; row < 13; row++)
            right += (tutti_tensor_get(a.guesses, row) > 0.5) == (row % 3 == 0 || row % 5 == 1);
        CHECK(right > 0 && right < 13);
        CHECK_NEAR(tutti_logs_get(&a.logs, "accuracy"), right / 13.0, 1e-7);
        close_asked(&a);
    }
}

/* ---- custom loops ---- */

static double loop(const char *devices, int64_t rows)
{
    tutti_strategy *strategy = devices ? mirrored(devices) : NULL;
    tutti_eager *e;
    double last = 0;
    CHECK_OK(tutti_eager_open(&e, .strategy = strategy, .deadline_seconds = 20));
    tutti_sym w = tutti_variable(tutti_eager_graph(e), tutti_full(0.2, FEATURES, 1), .name = "w");
    for (int step = 0; step < 4; step++) {
        tutti_tensor *batch = rows_of(rows - step % 2);
        TUTTI_STEP(e) {
            tutti_sym x = tutti_eager_feed(e, batch), loss;
            TUTTI_TAPE(tape, e)
                loss = tutti_mean(tutti_square(tutti_add(tutti_matmul(x, w), -1)));
            tutti_grad grad;
            tutti_tape_gradients(&tape, loss, 1, &w, &grad);
            tutti_apply_gradients(tutti_sgd(0.5), 1, &w, &grad);
            last = tutti_scalar_value(loss);
        }
        tutti_tensor_release(batch);
    }
    CHECK_OK(tutti_eager_check(e));
    tutti_eager_close(e);
    CHECK_OK(tutti_strategy_close(strategy));
    return last;
}

TUTTI_TEST(a_custom_loop_equals_one_device)
{
    for (size_t i = 0; i < TUTTI_COUNT(teams); i++) {
        double one = loop(NULL, 7);
        CHECK_NEAR(loop(teams[i], 7), one, 1e-5 * one);
    }
}
