/* suite_training_test.c: a network that learns, on one device or cut in two; see suite.h. */
#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "base/test.h"
#include "device/far/suite.h"

tutti_tensor *tutti__suite_numbers(uint64_t seed, int rank, const int64_t *dims)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F32, rank, dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i,
                         2 * tutti__random_f32((tutti_random_key){seed, 0}, (uint64_t)i) - 1);
    return tensor;
}

void tutti__suite_same(const tutti_tensor *a, const tutti_tensor *b, double tolerance)
{
    if (tolerance == 0) {
        CHECK(tutti_tensor_same(a, b));
        return;
    }
    CHECK(tutti_type_equal(tutti_tensor_type(a), tutti_tensor_type(b)));
    for (int64_t i = 0; i < tutti_tensor_count(a); i++) {
        double x = tutti_tensor_get(a, i), y = tutti_tensor_get(b, i);
        CHECK_NEAR(x, y, tolerance * (1 + fabs(y)));
    }
}

static tutti_sym dense(tutti_graph *g, tutti_sym x, int64_t in, int64_t out,
                       tutti_sym *ret_variables)
{
    tutti_sym w = tutti_variable(g, tutti_glorot_uniform(in, out), .name = "w", .seed = 7);
    tutti_sym b = tutti_variable(g, tutti_full(0.1, out), .name = "b");
    ret_variables[0] = w;
    ret_variables[1] = b;
    return tutti_add(tutti_matmul(x, w), b);
}

void tutti__suite_network_make(const char *first, const char *second, tutti_suite_network *ret)
{
    tutti_suite_network n = {0};
    tutti_sym hidden = TUTTI_NO_SYM;
    CHECK_OK(tutti_graph_create(&n.graph));
    n.x = tutti_placeholder(n.graph, TUTTI_F32, TUTTI_ANY, 6);
    n.labels = tutti_placeholder(n.graph, TUTTI_I32, TUTTI_ANY);
    TUTTI_WITH_DEVICE(n.graph, first)
        hidden = tutti_relu(dense(n.graph, n.x, 6, 5, n.variables));
    TUTTI_WITH_DEVICE(n.graph, second) {
        n.logits = dense(n.graph, hidden, 5, 3, n.variables + 2);
        n.loss = tutti_mean(tutti_nn_sparse_cross_entropy(n.labels, n.logits));
    }
    n.step = tutti_minimize(tutti_adam(.learning_rate = 0.05), n.loss);
    n.initialize = tutti_initialize_variables(n.graph);
    CHECK_OK(tutti_graph_check(n.graph));
    n.inputs = tutti__suite_numbers(3, 2, (int64_t[]){8, 6});
    CHECK_OK(tutti_tensor_from(TUTTI_I32, 1, (int64_t[]){8}, (int32_t[]){0, 1, 2, 0, 1, 2, 1, 1},
                               &n.targets));
    *ret = n;
}

void tutti__suite_network_free(tutti_suite_network *network)
{
    tutti_tensor_release(network->inputs);
    tutti_tensor_release(network->targets);
    tutti_graph_destroy(network->graph);
}

void tutti__suite_train(const tutti_suite_network *n, const char *device, int steps,
                        tutti_suite_trained *ret)
{
    tutti_session *session;
    tutti_suite_trained trained = {.count = steps + 4,
                                   .values = calloc((size_t)steps + 4, sizeof *trained.values)};
    CHECK(trained.values != NULL);
    CHECK_OK(tutti_session_open(&session, n->graph, .device = device, .deadline_seconds = 30));
    CHECK_OK(tutti_run(session, .target = n->initialize));
    for (int i = 0; i < steps; i++)
        CHECK_OK(tutti_run(session, .feed = TUTTI_FEED({n->x, n->inputs}, {n->labels, n->targets}),
                           .fetch = TUTTI_FETCH({n->loss, &trained.values[i]}), .target = n->step));
    for (int i = 0; i < 4; i++)
        CHECK_OK(tutti_session_get(session, n->variables[i], &trained.values[steps + i]));
    tutti_session_close(session);
    *ret = trained;
}

void tutti__suite_trained_free(tutti_suite_trained *trained)
{
    for (int i = 0; i < trained->count; i++)
        tutti_tensor_release(trained->values[i]);
    free(trained->values);
}

void tutti__suite_compare(const tutti_suite_trained *a, const tutti_suite_trained *b,
                          double tolerance)
{
    CHECK_INT(a->count, b->count);
    for (int i = 0; i < a->count; i++)
        tutti__suite_same(a->values[i], b->values[i], tolerance);
}

void tutti__suite_trains(const char *device, double tolerance)
{
    tutti_suite_network network;
    tutti_suite_trained here, there;
    tutti__suite_network_make("", "", &network);
    tutti__suite_train(&network, "cpu:0", 5, &here);
    tutti__suite_train(&network, device, 5, &there);
    tutti__suite_compare(&there, &here, tolerance);
    CHECK(tutti_tensor_get(there.values[4], 0) <
          tutti_tensor_get(there.values[0], 0)); /* it learns */
    tutti__suite_trained_free(&here);
    tutti__suite_trained_free(&there);
    tutti__suite_network_free(&network);
}

void tutti__suite_trains_cut(const char *first, const char *second, double tolerance)
{
    tutti_suite_network whole, cut;
    tutti_suite_trained here, there;
    tutti__suite_network_make("", "", &whole);
    tutti__suite_network_make(first, second, &cut);
    tutti__suite_train(&whole, "cpu:0", 5, &here);
    tutti__suite_train(&cut, first, 5, &there);
    tutti__suite_compare(&there, &here, tolerance);
    tutti__suite_trained_free(&here);
    tutti__suite_trained_free(&there);
    tutti__suite_network_free(&whole);
    tutti__suite_network_free(&cut);
}
