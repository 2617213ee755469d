/* spmd_test.c: a job spread over replicas computes what one device computes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/test.h"
#include "tutti/tutti.h"

/* A network with what batches touch: matrices, bias, dropout, batch norm, a mean loss. */
typedef struct net {
    tutti_graph *graph;
    tutti_session *session;
    tutti_strategy *strategy;
    tutti_sym x, y, loss, step, hidden;
    tutti_sym weights[4];
} net;

enum { INPUTS = 5, HIDDEN = 7, CLASSES = 3, WEIGHTS = 4 };

static tutti_tensor *numbers(int64_t rows, int64_t columns, unsigned seed)
{
    tutti_tensor *t;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 2, (int64_t[]){rows, columns}, &t));
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
    tutti_tensor *start = numbers(rows, columns, (unsigned)i + 3);
    n->weights[i] = tutti_variable(n->graph, tutti_tensor_init(start), .name = name);
    tutti_tensor_release(start);
    return n->weights[i];
}

static net start(tutti_strategy *strategy, bool dropout)
{
    net n = {.strategy = strategy};
    CHECK_OK(tutti_graph_create(&n.graph));
    CHECK_OK(tutti_session_open(&n.session, n.graph, .strategy = strategy, .deadline_seconds = 20));
    tutti_graph *g = n.graph;
    n.x = tutti_split_batch(tutti_placeholder(g, TUTTI_F32, TUTTI_ANY, INPUTS));
    n.y = tutti_split_batch(tutti_placeholder(g, TUTTI_I32, TUTTI_ANY));
    tutti_sym w0 = weight(&n, 0, "w0", INPUTS, HIDDEN), b0 = weight(&n, 1, "b0", 1, HIDDEN);
    tutti_sym h = tutti_relu(tutti_add(tutti_matmul(n.x, w0), b0));
    if (dropout)
        h = tutti_nn_dropout(h, 0.3);
    n.hidden = h;
    tutti_sym w1 = weight(&n, 2, "w1", HIDDEN, CLASSES), b1 = weight(&n, 3, "b1", 1, CLASSES);
    tutti_sym logits = tutti_add(tutti_matmul(h, w1), b1);
    n.loss = tutti_mean(tutti_nn_sparse_cross_entropy(n.y, logits));
    tutti_grad grads[WEIGHTS];
    tutti_gradients(n.loss, WEIGHTS, n.weights, grads);
    tutti_sym updates[WEIGHTS];
    for (int i = 0; i < WEIGHTS; i++)
        updates[i] = tutti_assign_sub(n.weights[i], tutti_mul(grads[i].value, 0.5));
    n.step = (tutti_group)(g, NULL, WEIGHTS, updates);
    CHECK_OK(tutti_graph_check(g));
    CHECK_OK(tutti_run(n.session, .target = tutti_initialize_variables(g)));
    return n;
}

static double train(net *n, int64_t rows)
{
    tutti_tensor *x = numbers(rows, INPUTS, 0), *y = labels(rows), *loss;
    CHECK_OK(tutti_run(n->session, .feed = TUTTI_FEED({n->x, x}, {n->y, y}),
                       .fetch = TUTTI_FETCH({n->loss, &loss}), .target = n->step));
    double value = tutti_tensor_get(loss, 0);
    tutti_tensor_release(loss);
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

static void check_equal(net *a, net *b, double tolerance)
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

static void check(tutti_strategy *strategy, bool dropout)
{
    net one = start(NULL, dropout);
    net many = start(strategy, dropout);
    CHECK_OK(tutti_strategy_check(many.strategy));
    static const int64_t batches[] = {8, 7, 2, 1, 12};
    for (size_t i = 0; i < TUTTI_COUNT(batches); i++) {
        double a = train(&one, batches[i]), b = train(&many, batches[i]);
        CHECK_NEAR(a, b, 1e-5 * fabs(a));
        check_equal(&one, &many, 2e-6);
    }
    finish(&one);
    finish(&many);
}

static void check_devices(const char *devices, bool dropout)
{
    check(tutti_strategy_mirrored(.devices = devices), dropout);
}

TUTTI_TEST(spread_with_central_storage_equals_one_device)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    check(tutti_strategy_central_storage(.devices = "cpu:0,cpu:1"), true);
    check(tutti_strategy_central_storage(.devices = "cpu:1,cpu:2", .central = "cpu:0"), false);
    check(tutti_strategy_central_storage(.devices = "far:0,far:1", .central = "cpu:0"), false);
}

TUTTI_TEST(spread_training_equals_one_device)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    check_devices("cpu:0,cpu:1", false);
    check_devices("cpu:0,cpu:1,cpu:2", false);
    check_devices("far:0,far:1", false);
    check_devices("cpu:0,far:0,whole:0", false);
}

TUTTI_TEST(spread_random_numbers_are_those_of_one_device)
{
    CHECK_OK(tutti__param_set("CPU_DEVICES", "3"));
    check_devices("cpu:0,cpu:1", true);
    check_devices("cpu:0,cpu:1,cpu:2", true);
}
