/* pipeline_test.c: stages on devices, micro-batches one behind the other, give what one device
 * gives. */
#include <math.h>
#include <string.h>

#include "base/test.h"
#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

/* A network of three or four stages with what pipelines stumble over: a value that skips a stage, a
 * weight that two stages share, dropout, a loss whose weights are rows of the batch. */
enum { INPUTS = 5, HIDDEN = 6, CLASSES = 3, WEIGHTS = 5 };

typedef struct net {
    tutti_graph *graph;
    tutti_session *session;
    tutti_strategy *strategy;
    tutti_sym x, y, loss, hits, step, logits;
    tutti_sym weights[WEIGHTS];
} net;

static tutti_tensor *numbers(tutti_dtype dtype, int64_t rows, int64_t columns, unsigned seed)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(dtype, 2, (int64_t[]){rows, columns}, &t));
    for (int64_t i = 0; i < rows * columns; i++)
        tutti_tensor_set(t, i, sin(0.7 * (double)(i + 1) * (seed + 1)) * 0.8);
    return t;
}

static tutti_tensor *labels(int64_t rows)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_I32, 1, &rows, &t));
    for (int64_t i = 0; i < rows; i++)
        tutti_tensor_set(t, i, (double)(i * 7 % CLASSES));
    return t;
}

static tutti_sym weight(net *n, int i, const char *name, int64_t rows, int64_t columns)
{
    tutti_tensor *begin = numbers(TUTTI_F64, rows, columns, (unsigned)i + 3);
    n->weights[i] = tutti_variable(n->graph, tutti_tensor_init(begin), .name = name);
    tutti_tensor_release(begin);
    return n->weights[i];
}

static void build(net *n, bool dropout)
{
    tutti_graph *g = n->graph;
    tutti_sym h0 = {0}, h1 = {0}, h2 = {0}, shared = {0};
    n->x = tutti_split_batch(tutti_placeholder(g, TUTTI_F64, TUTTI_ANY, INPUTS));
    n->y = tutti_split_batch(tutti_placeholder(g, TUTTI_I32, TUTTI_ANY));
    TUTTI_WITH_STAGE(g, 0)
    {
        h0 = tutti_relu(tutti_matmul(n->x, weight(n, 0, "w0", INPUTS, HIDDEN)));
    }
    TUTTI_WITH_STAGE(g, 1)
    {
        shared = weight(n, 1, "w1", HIDDEN, HIDDEN);
        h1 = tutti_tanh(tutti_add(tutti_matmul(h0, shared), weight(n, 2, "b1", 1, HIDDEN)));
        if (dropout)
            h1 = tutti_nn_dropout(h1, 0.3);
    }
    TUTTI_WITH_STAGE(g, 2)
    {
        h2 = tutti_add(tutti_relu(tutti_matmul(h1, shared)), h0); /* tied, and a skip */
    }
    TUTTI_WITH_STAGE(g, 3)
    {
        n->logits = tutti_add(tutti_matmul(h2, weight(n, 3, "w3", HIDDEN, CLASSES)),
                              weight(n, 4, "b3", 1, CLASSES));
    }
    tutti_sym counts = tutti_add(tutti_cast(n->y, TUTTI_F64), 1); /* weights of the examples */
    tutti_sym losses = tutti_mul(tutti_nn_sparse_cross_entropy(n->y, n->logits), counts);
    n->loss = tutti_div(tutti_sum(losses), tutti_sum(counts));
    n->hits = tutti_sum(tutti_cast(
        tutti_equal(tutti_cast(tutti_argmax(n->logits, 1), TUTTI_I32), n->y), TUTTI_F64));
    tutti_grad grads[WEIGHTS];
    tutti_sym updates[WEIGHTS];
    tutti_gradients(n->loss, WEIGHTS, n->weights, grads);
    for (int i = 0; i < WEIGHTS; i++)
        updates[i] = tutti_assign_sub(n->weights[i], tutti_mul(grads[i].value, 0.5));
    n->step = (tutti_group)(g, NULL, WEIGHTS, updates);
}

static net start(tutti_strategy *strategy, bool dropout, bool deterministic)
{
    net n = {.strategy = strategy};
    if (strategy)
        CHECK_OK(tutti_strategy_check(strategy));
    CHECK_OK(tutti_graph_create(&n.graph));
    CHECK_OK(tutti_session_open(&n.session, n.graph, .strategy = strategy, .deadline_seconds = 20,
                                .deterministic = deterministic));
    build(&n, dropout);
    CHECK_OK(tutti_graph_check(n.graph));
    CHECK_OK(tutti_run(n.session, .target = tutti_initialize_variables(n.graph)));
    return n;
}

static double train(net *n, int64_t rows, double *ret_hits)
{
    tutti_tensor *x = numbers(TUTTI_F64, rows, INPUTS, 0), *y = labels(rows), *loss, *hits;
    CHECK_OK(tutti_run(n->session, .feed = TUTTI_FEED({n->x, x}, {n->y, y}),
                       .fetch = TUTTI_FETCH({n->loss, &loss}, {n->hits, &hits}),
                       .target = n->step));
    double value = tutti_tensor_get(loss, 0);
    *ret_hits = tutti_tensor_get(hits, 0);
    tutti_tensor_release(loss);
    tutti_tensor_release(hits);
    tutti_tensor_release(x);
    tutti_tensor_release(y);
    return value;
}

static void finish(net *n)
{
    tutti_session_close(n->session);
    tutti_graph_destroy(n->graph);
    CHECK_OK(tutti_strategy_close(n->strategy));
}

static void check_weights(net *a, net *b, double tolerance)
{
    for (int i = 0; i < WEIGHTS; i++) {
        tutti_tensor *u, *v;
        CHECK_OK(tutti_session_get(a->session, a->weights[i], &u));
        CHECK_OK(tutti_session_get(b->session, b->weights[i], &v));
        for (int64_t k = 0; k < tutti_tensor_count(u); k++)
            CHECK_NEAR(tutti_tensor_get(u, k), tutti_tensor_get(v, k), tolerance);
        tutti_tensor_release(u);
        tutti_tensor_release(v);
    }
}

static void check(tutti_strategy *strategy, bool dropout, bool deterministic)
{
    static const int64_t batches[] = {16, 16, 13, 3, 1, 16};
    net one = start(NULL, dropout, false), many = start(strategy, dropout, deterministic);
    for (size_t i = 0; i < TUTTI_COUNT(batches); i++) {
        double hits[2], a = train(&one, batches[i], &hits[0]),
                        b = train(&many, batches[i], &hits[1]);
        CHECK_NEAR(a, b, 1e-11 * fabs(a));
        CHECK_NEAR(hits[0], hits[1], 0);
        check_weights(&one, &many, 1e-12);
    }
    finish(&one);
    finish(&many);
}

TUTTI_TEST(pipelines_learn_what_one_device_learns)
{
    static const char *const schedules[] = {"naive", "gpipe", "1f1b", "zero_bubble"};
    for (size_t i = 0; i < TUTTI_COUNT(schedules); i++)
        check(tutti_strategy_pipeline(.stages = 4, .micro_batches = 8, .schedule = schedules[i]),
              i % 2 == 1, false);
}

TUTTI_TEST(pipelines_with_several_stages_to_a_device)
{
    check(tutti_strategy_pipeline(.devices = "cpu:0,cpu:1", .stages = 4, .micro_batches = 4), true,
          false);
    check(tutti_strategy_pipeline(.devices = "cpu:0", .stages = 4, .micro_batches = 3,
                                  .schedule = "interleaved"),
          false, false);
}

TUTTI_TEST(pipelines_of_far_devices)
{
    check(tutti_strategy_pipeline(.devices = "far:0,far:1,far:2,far:3", .micro_batches = 4), true,
          false);
    check(tutti_strategy_pipeline(.devices = "far:0,cpu:0,far:1,whole:0", .micro_batches = 4,
                                  .schedule = "zero_bubble"),
          false, false);
}

/* The bits of a deterministic run do not depend on stages or micro-batches. */
TUTTI_TEST(deterministic_pipelines_have_the_bits_of_one_device)
{
    static const int64_t batches[] = {16, 16, 13, 3, 16};
    static const int micro[] = {1, 2, 4, 8};
    for (size_t m = 0; m < TUTTI_COUNT(micro); m++) {
        net one = start(tutti_strategy_one_device(.deterministic = true), true, true);
        net many = start(
            tutti_strategy_pipeline(.stages = 4, .micro_batches = micro[m], .deterministic = true),
            true, true);
        for (size_t i = 0; i < TUTTI_COUNT(batches); i++) {
            double hits[2], a = train(&one, batches[i], &hits[0]),
                            b = train(&many, batches[i], &hits[1]);
            CHECK_NEAR(a, b, 0);
            check_weights(&one, &many, 0);
        }
        finish(&one);
        finish(&many);
    }
}

/* Predictions are those of all rows, in order. */
TUTTI_TEST(pipelines_predict)
{
    net one = start(NULL, false, false);
    net many = start(tutti_strategy_pipeline(.stages = 4, .micro_batches = 4), false, false);
    static const int64_t batches[] = {8, 5, 1};
    for (size_t i = 0; i < TUTTI_COUNT(batches); i++) {
        tutti_tensor *x = numbers(TUTTI_F64, batches[i], INPUTS, 0), *u, *v;
        CHECK_OK(tutti_run(one.session, .feed = TUTTI_FEED({one.x, x}),
                           .fetch = TUTTI_FETCH({one.logits, &u})));
        CHECK_OK(tutti_run(many.session, .feed = TUTTI_FEED({many.x, x}),
                           .fetch = TUTTI_FETCH({many.logits, &v})));
        CHECK_INT(tutti_tensor_count(u), tutti_tensor_count(v));
        for (int64_t k = 0; k < tutti_tensor_count(u); k++)
            CHECK_NEAR(tutti_tensor_get(u, k), tutti_tensor_get(v, k), 1e-12);
        tutti_tensor_release(u);
        tutti_tensor_release(v);
        tutti_tensor_release(x);
    }
    finish(&one);
    finish(&many);
}

static void refused(tutti_strategy *strategy, const char *message)
{
    CHECK(tutti_strategy_check(strategy) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), message);
    tutti_strategy_close(strategy);
}

TUTTI_TEST(pipelines_that_cannot_be_are_refused)
{
    refused(tutti_strategy_pipeline(.devices = "cpu:0,cpu:1", .stages = 1),
            "1 stages leave 1 of the 2 devices without one");
    refused(tutti_strategy_pipeline(.devices = "cpu:0,cpu:1", .stages = 3),
            "3 stages do not divide by 2 devices");
    refused(tutti_strategy_pipeline(.stages = 2, .micro_batches = -1), "not -1");
    refused(tutti_strategy_pipeline(.stages = -2), "not -2");
    refused(tutti_strategy_pipeline(.stages = 2, .schedule = "fast"),
            "there is no schedule 'fast'");
    refused(tutti_strategy_pipeline(.devices = "cpu:0,cpu:1", .stages = 4, .schedule = "gpipe"),
            "has one stage to a device");
    refused(tutti_strategy_pipeline(.stages = 2, .micro_batches = 9, .deterministic = true),
            "which 9 micro-batches cannot share");
    refused(tutti_strategy_pipeline(.devices = "cpu:0,cpu:1", .stages = 4, .micro_batches = 3),
            "do not divide by 2 devices");
}

TUTTI_TEST(a_stage_that_no_device_has_is_named)
{
    net n = {.strategy = tutti_strategy_pipeline(.stages = 2, .micro_batches = 2)};
    CHECK_OK(tutti_graph_create(&n.graph));
    CHECK_OK(tutti_session_open(&n.session, n.graph, .strategy = n.strategy));
    build(&n, false);
    CHECK(tutti_run(n.session, .target = tutti_initialize_variables(n.graph)) != TUTTI_OK);
    CHECK_CONTAINS(tutti_error_message(), "is in stage 3, and the pipeline has stages 0 to 1");
    finish(&n);
}

/* ---- stages in several processes ---- */

/* Every process builds and runs the same, gets the same results, and has the variables of its own
 * stages. */
static tutti_status train_apart(tutti_strategy *strategy, void *context)
{
    static const int64_t batches[] = {16, 13, 3, 1, 16};
    tutti_strategy *alone = tutti_strategy_one_device(.devices = "cpu:0");
    net one = start(alone, true, false), many = start(strategy, true, false);
    (void)context;
    for (size_t i = 0; i < TUTTI_COUNT(batches); i++) {
        double hits[2], a = train(&one, batches[i], &hits[0]),
                        b = train(&many, batches[i], &hits[1]);
        WORKER_EXPECT(fabs(a - b) <= 1e-11 * fabs(a));
        WORKER_EXPECT(hits[0] == hits[1]);
    }
    tutti_tensor *x = numbers(TUTTI_F64, 5, INPUTS, 0), *u, *v;
    TUTTI_TRY(tutti_run(one.session, .feed = TUTTI_FEED({one.x, x}),
                        .fetch = TUTTI_FETCH({one.logits, &u})));
    TUTTI_TRY(tutti_run(many.session, .feed = TUTTI_FEED({many.x, x}),
                        .fetch = TUTTI_FETCH({many.logits, &v})));
    for (int64_t k = 0; k < tutti_tensor_count(u); k++)
        WORKER_EXPECT(fabs(tutti_tensor_get(u, k) - tutti_tensor_get(v, k)) < 1e-12);
    tutti_tensor_release(u);
    tutti_tensor_release(v);
    tutti_tensor_release(x);
    many.strategy = NULL; /* the caller's */
    finish(&one);
    finish(&many);
    return TUTTI_OK;
}

TUTTI_TEST_ALONE(pipelines_of_several_processes)
{
    static const char *const engines[] = {"shm", "tcp"};
    for (size_t i = 0; i < TUTTI_COUNT(engines); i++)
        tutti__test_workers(4,
                            TUTTI_OPTIONS(tutti_strategy_options, .devices = "cpu:0",
                                          .micro_batches = 4, .engine = engines[i]),
                            train_apart, NULL);
    tutti__test_workers(2,
                        TUTTI_OPTIONS(tutti_strategy_options, .devices = "cpu:0,cpu:1",
                                      .micro_batches = 4, .schedule = "zero_bubble"),
                        train_apart, NULL);
    tutti__test_workers(
        2,
        TUTTI_OPTIONS(tutti_strategy_options, .devices = "cpu:0", .stages = 4, .micro_batches = 4),
        train_apart, NULL);
}
