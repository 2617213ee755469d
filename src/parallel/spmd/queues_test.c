/* queues_test.c: batches out of queues: of each process's own queue its rows, cut among its
 * devices, so that losses and weights are those of one device. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "parallel/strategies/workers.h"
#include "tutti/tutti.h"

enum { FEATURES = 3, STEPS = 4 };

typedef struct net {
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym fed, put, close, size, fed_loss, w, loss, step;
} net;

typedef struct course {
    double losses[STEPS];
    float weights[FEATURES];
} course;

/* loss = mean of (x w - y)^2, x and y out of a queue; fed_loss = mean of x w, of what is fed. */
static tutti_status open_net(tutti_strategy *s, int64_t batch, net *ret)
{
    net n = {0};
    TUTTI_TRY(tutti_graph_create(&n.graph));
    TUTTI_TRY(tutti_session_open(&n.session, n.graph, .strategy = s, .deadline_seconds = 20));
    tutti_sym x = tutti_placeholder(n.graph, TUTTI_F32, TUTTI_ANY, FEATURES),
              y = tutti_sum(x, .axes = TUTTI_AXES(1));
    tutti_sym queue =
        tutti_fifo_queue(n.graph, 0, TUTTI_TYPE(TUTTI_F32, FEATURES), TUTTI_TYPE(TUTTI_F32));
    n.fed = x;
    n.put = tutti_enqueue_many(queue, x, y);
    n.close = tutti_queue_close(queue, true);
    n.size = tutti_queue_size(queue);
    n.w = tutti_variable(n.graph, tutti_full(0.25, FEATURES, 1), .name = "w");
    tutti_sym rows = tutti_split_batch(tutti_dequeue_many(queue, batch));
    tutti_sym guess = tutti_reshape(tutti_matmul(rows, n.w), -1);
    n.loss = tutti_mean(tutti_square(tutti_sub(guess, tutti_sym_output(rows, 1))));
    n.step = tutti_minimize(tutti_sgd(0.1), n.loss);
    n.fed_loss = tutti_mean(tutti_matmul(x, n.w));
    TUTTI_TRY(tutti_run(n.session, .target = tutti_initialize_variables(n.graph)));
    *ret = n;
    return TUTTI_OK;
}

static void close_net(net *n)
{
    tutti_session_close(n->session);
    tutti_graph_destroy(n->graph);
}

/* Rows [first, first + rows) of the stream into this process's queue. */
static tutti_status put_rows(const net *n, int64_t first, int64_t rows)
{
    tutti_tensor *x;
    TUTTI_TRY(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, FEATURES}, &x));
    for (int64_t i = 0; i < rows * FEATURES; i++) {
        int64_t at = first * FEATURES + i;
        tutti_tensor_set(x, i, sin(0.37 * (double)(at * at % 10007)));
    }
    tutti_status status = tutti_run(n->session, .feed = TUTTI_FEED({n->fed, x}), .target = n->put);
    tutti_tensor_release(x);
    return status;
}

static tutti_status run_step(const net *n, double *ret_loss)
{
    tutti_tensor *loss;
    TUTTI_TRY(tutti_run(n->session, .fetch = TUTTI_FETCH({n->loss, &loss}), .target = n->step));
    *ret_loss = tutti_tensor_get(loss, 0);
    tutti_tensor_release(loss);
    return TUTTI_OK;
}

static tutti_status read_weights(const net *n, float *ret)
{
    tutti_tensor *w;
    TUTTI_TRY(tutti_run(n->session, .fetch = TUTTI_FETCH({n->w, &w})));
    memcpy(ret, tutti_tensor_data(w), FEATURES * sizeof *ret);
    tutti_tensor_release(w);
    return TUTTI_OK;
}

/* STEPS batches of the stream; this process puts in its rows of each. */
static tutti_status train(tutti_strategy *s, int64_t batch, course *ret)
{
    net n;
    int64_t first, rows;
    double none;
    TUTTI_TRY(open_net(s, batch, &n));
    tutti_strategy_own_rows(s, batch, &first, &rows);
    for (int i = 0; i < STEPS; i++)
        TUTTI_TRY(put_rows(&n, i * batch + first, rows));
    TUTTI_TRY(tutti_run(n.session, .target = n.close));
    for (int i = 0; i < STEPS; i++)
        TUTTI_TRY(run_step(&n, &ret->losses[i]));
    TUTTI_TRY(read_weights(&n, ret->weights));
    WORKER_EXPECT(run_step(&n, &none) == TUTTI_OUT_OF_RANGE);
    close_net(&n);
    return TUTTI_OK;
}

/* Trains by the strategy and on one device. With `bits` both are equal to the last. */
static tutti_status compare(tutti_strategy *s, int64_t batch, bool bits)
{
    course many, one;
    tutti_strategy *alone = tutti_strategy_one_device(.devices = "cpu:0", .deterministic = bits);
    TUTTI_TRY(tutti_strategy_check(alone));
    TUTTI_TRY(train(alone, batch, &one));
    tutti_strategy_close(alone);
    TUTTI_TRY(train(s, batch, &many));
    for (int i = 0; i < STEPS; i++)
        WORKER_NEAR(many.losses[i], one.losses[i]);
    for (int i = 0; i < FEATURES; i++)
        WORKER_NEAR(many.weights[i], one.weights[i]);
    WORKER_EXPECT(!bits || memcmp(many.weights, one.weights, sizeof one.weights) == 0);
    return TUTTI_OK;
}

/* ---- one process ---- */

TUTTI_TEST(devices_share_batches_out_of_a_queue)
{
    static const char *const teams[] = {"cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2", "far:0,far:1",
                                        "cpu:0,far:0,whole:0", "whole:0,whole:1"};
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    for (size_t i = 0; i < TUTTI_COUNT(teams); i++)
        for (int64_t batch = 1; batch < 8; batch += 3) {
            tutti_strategy *s = tutti_strategy_mirrored(.devices = teams[i]);
            CHECK_OK(compare(s, batch, false));
            tutti_strategy_close(s);
            s = tutti_strategy_central_storage(.devices = teams[i]);
            CHECK_OK(compare(s, batch, false));
            tutti_strategy_close(s);
        }
    tutti_strategy *s =
        tutti_strategy_mirrored(.devices = "cpu:0,cpu:1,cpu:2", .deterministic = true);
    CHECK_OK(compare(s, 11, true));
    tutti_strategy_close(s);
}

/* What is marked is not computed on every device: the matrix that one of two has is half as high.
 */
TUTTI_TEST(devices_compute_their_rows_of_a_queue_only)
{
    char *text;
    net n;
    double loss;
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    tutti_strategy *s = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
    CHECK_OK(open_net(s, 6, &n));
    CHECK_OK(put_rows(&n, 0, 6));
    CHECK_OK(run_step(&n, &loss));
    CHECK_OK(tutti_session_print(n.session, &text));
    CHECK_CONTAINS(text, "f32[3,3]");
    free(text);
    close_net(&n);
    tutti_strategy_close(s);
}

TUTTI_TEST(a_batch_out_of_a_queue_is_the_batch_of_the_run)
{
    net n;
    tutti_tensor *fed, *loss, *mean;
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    tutti_strategy *s = tutti_strategy_mirrored(.devices = "cpu:0,cpu:1");
    CHECK_OK(open_net(s, 6, &n));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){4, FEATURES}, &fed));
    tutti_split_batch(n.fed);
    CHECK_STATUS(tutti_run(n.session, .feed = TUTTI_FEED({n.fed, fed}),
                           .fetch = TUTTI_FETCH({n.loss, &loss}, {n.fed_loss, &mean})),
                 TUTTI_INVALID);
    CHECK_CONTAINS(tutti_error_message(), "takes 6 rows as those of the batch, which has 4");
    tutti_tensor_release(fed);
    close_net(&n);
    tutti_strategy_close(s);
}

/* ---- several ---- */

/* Batches that do not come out even, and one with fewer rows than processes. */
static tutti_status check_batches(tutti_strategy *s, void *context)
{
    (void)context;
    for (int64_t batch = 1; batch <= 13; batch += 2)
        TUTTI_TRY(compare(s, batch, false));
    return TUTTI_OK;
}

static tutti_status check_bits(tutti_strategy *s, void *context)
{
    (void)context;
    TUTTI_TRY(compare(s, 5, true));
    return compare(s, 27, true);
}

TUTTI_TEST_ALONE(workers_take_their_rows_out_of_queues_of_their_own)
{
    tutti__test_workers(2, NULL, check_batches, NULL);
    tutti__test_workers(4, NULL, check_batches, NULL);
    tutti__test_workers(2, TUTTI_OPTIONS(tutti_strategy_options, .devices = "cpu:0,far:0"),
                        check_batches, NULL);
    tutti__test_workers(3, TUTTI_OPTIONS(tutti_strategy_options, .overlap = 1, .bucket_bytes = 8),
                        check_batches, NULL);
}

TUTTI_TEST_ALONE(queues_of_workers_give_the_bits_of_one_device)
{
    tutti_strategy_options options = {.struct_size = sizeof options, .deterministic = true};
    tutti__test_workers(3, &options, check_bits, NULL);
    options.devices = "cpu:0,far:0";
    tutti__test_workers(2, &options, check_bits, NULL);
}

/* Worker 1 has rows of one batch only: all end at the second step, without a change, and go on
 * meeting. What the others took for it is gone. */
static tutti_status check_end(tutti_strategy *s, void *context)
{
    enum { BATCH = 6 };
    net n;
    int64_t first, rows;
    double loss;
    float before[FEATURES], after[FEATURES];
    tutti_tensor *size;
    int rank = tutti_strategy_rank(s);
    (void)context;
    TUTTI_TRY(open_net(s, BATCH, &n));
    tutti_strategy_own_rows(s, BATCH, &first, &rows);
    for (int i = 0; i < (rank == 1 ? 1 : 3); i++)
        TUTTI_TRY(put_rows(&n, i * BATCH + first, rows));
    if (rank == 1) {
        TUTTI_TRY(put_rows(&n, BATCH, rows - 1));
        TUTTI_TRY(tutti_run(n.session, .target = n.close));
    }
    TUTTI_TRY(run_step(&n, &loss));
    TUTTI_TRY(read_weights(&n, before));
    for (int i = 0; i < 2; i++) {
        WORKER_EXPECT(run_step(&n, &loss) == TUTTI_OUT_OF_RANGE);
        WORKER_EXPECT(strstr(tutti_error_message(), "the queue of some process is closed"));
    }
    TUTTI_TRY(read_weights(&n, after));
    WORKER_EXPECT(memcmp(before, after, sizeof before) == 0);
    TUTTI_TRY(tutti_run(n.session, .fetch = TUTTI_FETCH({n.size, &size})));
    WORKER_EXPECT(tutti_tensor_get_int(size, 0) == (rank == 1 ? rows - 1 : 0));
    tutti_tensor_release(size);
    close_net(&n);
    return check_batches(s, NULL);
}

TUTTI_TEST_ALONE(a_queue_that_ends_ends_the_step_on_all_workers)
{
    tutti__test_workers(3, NULL, check_end, NULL);
    tutti__test_workers(2, TUTTI_OPTIONS(tutti_strategy_options, .devices = "cpu:0,far:0"),
                        check_end, NULL);
}

/* ---- what is refused ---- */

static tutti_status check_refused(tutti_strategy *s, void *context)
{
    tutti_graph *g;
    tutti_session *session;
    tutti_tensor *value;
    (void)context;
    TUTTI_TRY(tutti_graph_create(&g));
    TUTTI_TRY(tutti_session_open(&session, g, .strategy = s, .deadline_seconds = 60));
    tutti_sym queue = tutti_fifo_queue(g, 4, TUTTI_TYPE(TUTTI_F32)),
              open = tutti_padding_queue(g, 4, TUTTI_TYPE(TUTTI_F32, TUTTI_ANY));
    tutti_sym out[] = {tutti_dequeue(queue), tutti_dequeue_many(queue, 2),
                       tutti_split_batch(tutti_dequeue_up_to(queue, 2)),
                       tutti_split_batch(tutti_dequeue_many(open, 2))};
    for (size_t i = 0; i < TUTTI_COUNT(out); i++) {
        WORKER_EXPECT(tutti_run(session, .fetch = TUTTI_FETCH({out[i], &value})) ==
                      TUTTI_UNSUPPORTED);
        WORKER_EXPECT(strstr(tutti_error_message(), "a queue is one process's own"));
        WORKER_EXPECT(strstr(tutti_error_message(), "tutti_split_batch(tutti_dequeue_many("));
    }
    tutti_session_close(session);
    tutti_graph_destroy(g);
    return TUTTI_OK;
}

TUTTI_TEST_ALONE(workers_have_no_common_queue)
{
    tutti__test_workers(2, NULL, check_refused, NULL);
}
