/* semantics_test.c: what users of strategies rely on: rows, losses, statistics, random numbers,
 * metrics and predictions are those of the whole batch, however it is cut. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/job.h"
#include "base/params.h"
#include "base/test.h"
#include "tutti/tutti.h"

enum { FEATURES = 4, CLASSES = 3 };

static const char *const teams[] = {"cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2", "far:0,far:1",
                                    "cpu:0,far:0,whole:0", "cpu:0,cpu:1,cpu:2,cpu:3,cpu:4"};

static tutti_strategy *mirrored(const char *devices)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "5"));
    tutti_strategy *strategy = tutti_strategy_mirrored(.devices = devices);
    CHECK_OK(tutti_strategy_check(strategy));
    return strategy;
}

/* ---- flags ---- */

TUTTI_TEST(words_that_a_strategy_does_not_know_are_wrong_usage)
{
    static const struct {
        const char *setting, *message;
        int exit_code;
    } cases[] = {{"wire=f64", "--set wire takes f32, bf16, f16, topk:SHARE or powersgd:RANK", 2},
                 {"wire=", "--set wire takes", 2},
                 {"wire=topk:2", "topk:2", 1},
                 {"wire=zip:1", "zip:1", 1},
                 {"overlap=yes", "--set overlap takes auto, on or off, not 'yes'", 2},
                 {"shard=nothing", "there is no way 'nothing' to share data", 2},
                 {"shards=4294967297", "1 to 1024 shards", 1},
                 {"save_every=-1e300", "--set save_every takes", 2}};
    for (size_t i = 0; i < TUTTI_COUNT(cases); i++) {
        char *list[] = {(char *)"p", (char *)"--set", (char *)cases[i].setting, NULL};
        char **argv = list;
        int argc = 3;
        tutti_job *job = tutti_open(&argc, &argv);
        (void)tutti_job_strategy(job);
        CHECK_STATUS(tutti_job_check(job), TUTTI_INVALID);
        CHECK_CONTAINS(tutti_error_message(), cases[i].message);
        CHECK_INT(job->exit_code == 2, cases[i].exit_code == 2);
        tutti__job_discard(job);
    }
}

/* ---- rows ---- */

static void check_rows(const tutti_strategy *s, int64_t batch, int replica, int64_t first,
                       int64_t rows)
{
    int64_t start, count;
    tutti_strategy_rows(s, batch, replica, &start, &count);
    CHECK_INT(count, rows);
    if (rows > 0)
        CHECK_INT(start, first);
}

TUTTI_TEST(replicas_have_rows_in_order)
{
    tutti_strategy *two = mirrored(teams[0]), *five = mirrored(teams[4]);
    CHECK_INT(tutti_strategy_replicas(two), 2);
    CHECK_INT(tutti_strategy_replicas(five), 5);
    check_rows(two, 4, 0, 0, 2); /* range(6) in batches of 4: [0,1] and [2,3], then [4] and [5] */
    check_rows(two, 4, 1, 2, 2);
    check_rows(two, 2, 0, 0, 1);
    check_rows(two, 2, 1, 1, 1);
    for (int i = 0; i < 4; i++)
        check_rows(five, 4, i, i, 1);
    check_rows(five, 4, 4, 4, 0); /* the fifth has none */
    for (int64_t batch = 0; batch < 30; batch++) {
        int64_t next = 0, first, rows, least = batch, most = 0;
        for (int i = 0; i < 5; i++) {
            tutti_strategy_rows(five, batch, i, &first, &rows);
            CHECK(rows == 0 || first == next);
            next += rows;
            least = rows < least ? rows : least;
            most = rows > most ? rows : most;
        }
        CHECK_INT(next, batch); /* every row once */
        CHECK(most - least <= 1);
    }
    CHECK_OK(tutti_strategy_close(two));
    CHECK_OK(tutti_strategy_close(five));
}

/* ---- losses and gradients: loss = mean(w x), w = 1 ---- */

typedef struct mean_net {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym x, w, mean, sum, gradient, step;
} mean_net;

static mean_net open_mean(tutti_strategy *strategy)
{
    mean_net n = {0};
    CHECK_OK(tutti_graph_create(&n.graph));
    CHECK_OK(tutti_session_open(&n.session, n.graph, .strategy = strategy, .deadline_seconds = 20));
    n.x = tutti_split_batch(tutti_placeholder(n.graph, TUTTI_F32, TUTTI_ANY));
    n.w = tutti_variable(n.graph, tutti_full(1), .name = "w");
    tutti_sym losses = tutti_mul(n.w, n.x);
    n.mean = tutti_mean(losses);
    n.sum = tutti_sum(losses);
    tutti_grad grad;
    tutti_gradients(n.mean, 1, &n.w, &grad);
    n.gradient = grad.value;
    n.step = tutti_assign_sub(n.w, grad.value);
    CHECK_OK(tutti_graph_check(n.graph));
    CHECK_OK(tutti_run(n.session, .target = tutti_initialize_variables(n.graph)));
    return n;
}

static double take(tutti_tensor *t)
{
    double value = tutti_tensor_get(t, 0);
    tutti_tensor_release(t);
    return value;
}

static tutti_tensor *vector(int64_t count, const float *values)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_from(TUTTI_F32, 1, &count, values, &t));
    return t;
}

/* After a step w is 1 - the gradient, on whichever replica it is read. */
static void check_mean(const char *devices, int64_t count, const float *values, double expected)
{
    tutti_strategy *strategy = mirrored(devices);
    mean_net n = open_mean(strategy);
    tutti_tensor *x = vector(count, values), *mean, *sum, *gradient, *w;
    CHECK_OK(
        tutti_run(n.session, .feed = TUTTI_FEED({n.x, x}),
                  .fetch = TUTTI_FETCH({n.mean, &mean}, {n.sum, &sum}, {n.gradient, &gradient}),
                  .target = n.step));
    CHECK_NEAR(take(mean), expected, 1e-6);
    CHECK_NEAR(take(sum), expected * (double)count, 1e-5);
    CHECK_NEAR(take(gradient), expected, 1e-6);
    CHECK_OK(tutti_session_get(n.session, n.w, &w));
    CHECK_NEAR(take(w), 1 - expected, 1e-6);
    tutti_tensor_release(x);
    tutti_session_close(n.session);
    tutti_graph_destroy(n.graph);
    CHECK_OK(tutti_strategy_close(strategy));
}

TUTTI_TEST(losses_are_those_of_the_global_batch)
{
    for (size_t i = 0; i < TUTTI_COUNT(teams); i++) {
        check_mean(teams[i], 4, (const float[]){2, 3, 4, 5}, 3.5);
        check_mean(teams[i], 3, (const float[]){2, 4, 5}, 11.0 / 3); /* not the mean of 2 and 4.5 */
        check_mean(teams[i], 1, (const float[]){7}, 7);
        check_mean(teams[i], 7, (const float[]){1, 1, 1, 1, 1, 1, 8}, 2);
    }
}

/* ---- models ---- */

typedef struct trained {
    tutti_job *job;
    tutti_strategy *strategy;
    tutti_model *model;
    tutti_dataset *data;
} trained;

static tutti_tensor *features(int64_t rows)
{
    tutti_tensor *x;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, FEATURES}, &x));
    for (int64_t i = 0; i < rows * FEATURES; i++) {
        int64_t row = i / FEATURES; /* later rows are larger: cuts have other means */
        tutti_tensor_set(x, i, sin(1.3 * (double)i) + 0.2 * (double)row);
    }
    return x;
}

static tutti_tensor *classes(int64_t rows)
{
    tutti_tensor *y;
    CHECK_OK(tutti_tensor_create(TUTTI_I64, 1, &rows, &y));
    for (int64_t i = 0; i < rows; i++)
        tutti_tensor_set_int(y, i, i * 5 % 7 % CLASSES);
    return y;
}

/* devices NULL: one device. */
static trained open_trained(const char *devices, int64_t rows, int64_t batch)
{
    trained t = {.job = tutti_open(NULL, NULL)};
    if (devices)
        t.strategy = mirrored(devices);
    tutti_tensor *x = features(rows), *y = classes(rows);
    t.data = tutti_batch(tutti_from_tensor_slices(t.job, x, y), batch);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return t;
}

static void close_trained(trained *t)
{
    CHECK_OK(tutti_job_check(t->job));
    CHECK_INT(tutti_close(t->job), 0);
    CHECK_OK(tutti_strategy_close(t->strategy));
}

/* Everything whose sums run over the batch, or over the weights once. */
static void build_full(trained *t, int accumulate)
{
    t->model = tutti_sequential(
        t->job, tutti_input_shape(FEATURES),
        tutti_dense(8, .name = "first", .activation = TUTTI_RELU, .kernel_regularizer = "l2(0.01)"),
        tutti_batch_norm(.name = "norm", .momentum = 0.5), tutti_dropout(0.25),
        tutti_dense(CLASSES, .name = "last"));
    tutti_compile(t->model, .optimizer = tutti_sgd(0.1, .momentum = 0.9, .global_clip_norm = 0.5),
                  .loss = tutti_sparse_cross_entropy(.from_logits = true), .metrics = "accuracy",
                  .accumulate = accumulate);
}

static void check_same_weights(tutti_model *a, tutti_model *b, double tolerance)
{
    CHECK_INT(tutti_weight_count(a), tutti_weight_count(b));
    for (int i = 0; i < tutti_weight_count(a); i++) {
        tutti_weight_info info;
        tutti_tensor *u, *v;
        CHECK_OK(tutti_weight_at(a, i, &info));
        CHECK_OK(tutti_get_weight(a, info.name, &u));
        CHECK_OK(tutti_get_weight(b, info.name, &v));
        for (int64_t k = 0; k < tutti_tensor_count(u); k++)
            CHECK_NEAR(tutti_tensor_get(u, k), tutti_tensor_get(v, k), tolerance);
        tutti_tensor_release(u);
        tutti_tensor_release(v);
    }
}

static const tutti_history *fit_full(trained *t, int accumulate, bool inside)
{
    static const double weights[] = {1, 2, 0.5};
    const tutti_history *history = NULL;
    if (!inside)
        build_full(t, accumulate);
    TUTTI_WITH_STRATEGY(t->strategy)
    {
        if (inside)
            build_full(t, accumulate);
        history = tutti_fit(t->model, t->data, .epochs = 3, .validation = t->data, .quiet = true,
                            .class_weights = {CLASSES, weights});
    }
    CHECK_OK(tutti_job_check(t->job));
    CHECK(history);
    return history;
}

static void check_fit(const char *devices, int64_t rows, int64_t batch, int accumulate, bool inside)
{
    static const char *const names[] = {"loss", "accuracy", "val_loss", "val_accuracy"};
    trained one = open_trained(NULL, rows, batch), many = open_trained(devices, rows, batch);
    const tutti_history *a = fit_full(&one, accumulate, inside),
                        *b = fit_full(&many, accumulate, inside);
    for (int epoch = 0; epoch < 3; epoch++)
        for (size_t i = 0; i < TUTTI_COUNT(names); i++)
            CHECK_NEAR(tutti_history_get(b, names[i], epoch), tutti_history_get(a, names[i], epoch),
                       2e-5);
    CHECK_INT(tutti_model_steps(many.model), tutti_model_steps(one.model));
    check_same_weights(one.model, many.model, 2e-5);
    close_trained(&one);
    close_trained(&many);
}

/* 14 rows in batches of 6 leave 2: fewer than three or five replicas. */
TUTTI_TEST(fit_equals_one_device)
{
    for (size_t i = 0; i < TUTTI_COUNT(teams); i++)
        check_fit(teams[i], 14, 6, 1, true);
}

TUTTI_TEST(fit_equals_one_device_with_a_row_alone)
{
    check_fit(teams[0], 9, 4, 1, true); /* one row is left: one replica has none */
    check_fit(teams[4], 7, 3, 1, true); /* two replicas never have one */
}

TUTTI_TEST(a_model_may_be_built_before_its_strategy)
{
    check_fit(teams[0], 14, 6, 1, false);
    check_fit(teams[2], 14, 6, 1, false);
}

TUTTI_TEST(accumulated_steps_equal_one_device)
{
    check_fit(teams[0], 18, 6, 3, true);
    check_fit(teams[1], 20, 6, 2, true); /* the fourth batch has 2 rows */
}

/* moving = 0.5 * start + 0.5 * that of all rows; two rows and three count as five. */
TUTTI_TEST(batch_norm_counts_rows)
{
    for (size_t i = 0; i < TUTTI_COUNT(teams); i++) {
        trained t = open_trained(teams[i], 5, 5);
        tutti_tensor *x = features(5), *y = classes(5), *mean, *variance;
        tutti_logs logs;
        TUTTI_WITH_STRATEGY(t.strategy)
        {
            t.model = tutti_sequential(t.job, tutti_input_shape(FEATURES),
                                       tutti_batch_norm(.name = "norm", .momentum = 0.5),
                                       tutti_dense(CLASSES));
            tutti_compile(t.model, .optimizer = tutti_sgd(0.1),
                          .loss = tutti_sparse_cross_entropy(.from_logits = true));
            CHECK_OK(tutti_train_on_batch(t.model, 2, (tutti_tensor *[]){x, y}, &logs));
        }
        CHECK_OK(tutti_get_weight(t.model, "norm/moving_mean", &mean));
        CHECK_OK(tutti_get_weight(t.model, "norm/moving_variance", &variance));
        for (int k = 0; k < FEATURES; k++) {
            double sum = 0, squares = 0;
            for (int row = 0; row < 5; row++)
                sum += tutti_tensor_get(x, row * FEATURES + k) / 5;
            for (int row = 0; row < 5; row++)
                squares += pow(tutti_tensor_get(x, row * FEATURES + k) - sum, 2) / 5;
            CHECK_NEAR(tutti_tensor_get(mean, k), 0.5 * sum, 1e-6);
            CHECK_NEAR(tutti_tensor_get(variance, k), 0.5 + 0.5 * squares, 1e-6);
        }
        tutti_tensor_release(mean);
        tutti_tensor_release(variance);
        tutti_tensor_release(x);
        tutti_tensor_release(y);
        close_trained(&t);
    }
}
