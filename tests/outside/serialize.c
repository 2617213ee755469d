/* serialize.c: a graph with operators from outside goes to another process and back. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acme/acme.h"
#include "check.h"

enum { MOST = 1 << 20 };

static tutti_graph *make_graph(void)
{
    tutti_graph *g = NULL;
    CHECK_OK(tutti_graph_create(&g));
    tutti_sym x = tutti_placeholder_named(g, "x", TUTTI_F32, TUTTI_ANY, 2);
    tutti_sym w = tutti_variable(g, tutti_full(0.5, 3), .name = "w");
    tutti_sym rows = acme_rows(acme_swish(x, 0.25), w, 3);
    tutti_sym loss = tutti_apply_op_named(
        g, "add", "loss", 2, (tutti_sym[]){tutti_sum(rows), tutti_sym_output(rows, 1)}, 0, NULL);
    TUTTI_WITH_NAME(g, "grads") {
        tutti_gradient(loss, w);
        tutti_apply_op_named(g, "identity", "x", 1, (tutti_sym[]){tutti_gradient(loss, x)}, 0,
                             NULL);
    }
    tutti_initialize_variables(g);
    CHECK_OK(tutti_graph_check(g));
    return g;
}

static tutti_sym find(tutti_graph *g, const char *name)
{
    tutti_sym sym = {.node = tutti_graph_find(g, name)};
    check_at(sym.node != NULL, __FILE__, __LINE__, name);
    return sym;
}

/* The loss and its gradient, joined: what a graph computes, whoever built it. */
static tutti_tensor *compute(tutti_graph *g, const char *device)
{
    tutti_session *session = NULL;
    tutti_tensor *in = check_tensor(2, (int64_t[]){3, 2}, -0.7, 0.3), *loss = NULL, *grad = NULL,
                 *all = NULL;
    CHECK_OK(tutti_session_open(&session, g, .device = device));
    CHECK_OK(tutti_run(session, .target = find(g, "initialize_all")));
    CHECK_OK(
        tutti_run(session, .feed = TUTTI_FEED({find(g, "x"), in}),
                  .fetch = TUTTI_FETCH({find(g, "loss"), &loss}, {find(g, "grads/x"), &grad})));
    CHECK_OK(tutti_tensor_create(TUTTI_F32, 1, (int64_t[]){7}, &all));
    for (int64_t i = 0; loss && grad && i < 7; i++)
        tutti_tensor_set(all, i,
                         i == 0 ? tutti_tensor_get(loss, 0) : tutti_tensor_get(grad, i - 1));
    tutti_tensor_release(in);
    tutti_tensor_release(loss);
    tutti_tensor_release(grad);
    tutti_session_close(session);
    return all;
}

/* In a process that knows the operators: writes the graph to `to`. */
static int write_graph(int to)
{
    CHECK_OK(acme_register());
    tutti_graph *g = make_graph();
    void *data = NULL;
    size_t size = 0;
    CHECK_OK(tutti_graph_serialize(g, &data, &size));
    CHECK(size > 0 && write(to, data, size) == (ssize_t)size);
    free(data);
    tutti_graph_destroy(g);
    return check_end();
}

static size_t receive_graph(char *data)
{
    int ends[2], status = 1;
    size_t size = 0;
    if (pipe(ends) != 0)
        return 0;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        _exit(write_graph(ends[1]));
    }
    close(ends[1]);
    for (ssize_t got = 1; got > 0; size += got > 0 ? (size_t)got : 0)
        got = read(ends[0], data + size, MOST - size);
    close(ends[0]);
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    return size;
}

/* Text and bytes are those of a graph that was built here. */
static void check_same(tutti_graph *read_graph, tutti_graph *built, const char *data, size_t size)
{
    char *a = NULL, *b = NULL;
    void *again = NULL;
    size_t again_size = 0;
    CHECK_OK(tutti_graph_verify(read_graph));
    CHECK_OK(tutti_graph_print(read_graph, &a));
    CHECK_OK(tutti_graph_print(built, &b));
    CHECK(a && strstr(a, "acme.cubic_swish") && strstr(a, "acme.weighted_rows"));
    CHECK_OK(tutti_graph_serialize(read_graph, &again, &again_size));
    CHECK(again_size == size && memcmp(again, data, size) == 0);
    CHECK(tutti_graph_node_count(read_graph) == tutti_graph_node_count(built));
    free(a);
    free(b);
    free(again);
}

static double nothing(const double *x, const tutti_attr *attrs, int attr_count)
{
    (void)x, (void)attrs, (void)attr_count;
    return 0;
}

/* A newer version of the operator leaves graphs alone that were built with the older one. */
static void check_version(const char *data, size_t size, tutti_tensor *expected)
{
    static tutti_op newer;
    tutti_graph *g = NULL;
    newer = acme_cubic_swish;
    newer.version = 2;
    newer.scalar = nothing;
    CHECK_OK(tutti_op_register(&newer));
    CHECK(tutti_op_find("acme.cubic_swish") == &newer);
    CHECK(tutti_op_find("acme.cubic_swish@1") == &acme_cubic_swish);
    CHECK_OK(tutti_graph_deserialize(data, size, &g));
    tutti_tensor *value = compute(g, "cpu:0");
    CHECK(tutti_tensor_same(value, expected));
    tutti_tensor_release(value);
    tutti_graph_destroy(g);
}

int main(void)
{
    char *data = malloc(MOST);
    size_t size = data ? receive_graph(data) : 0;
    tutti_graph *g = NULL;
    CHECK(size > 0);
    CHECK(tutti_graph_deserialize(data, size, &g) == TUTTI_NOT_FOUND); /* not registered here yet */
    CHECK_SAYS("acme.cubic_swish");
    CHECK_OK(acme_register());
    CHECK_OK(tutti_graph_deserialize(data, size, &g));
    tutti_graph *built = make_graph();
    check_same(g, built, data, size);
    tutti_tensor *expected = compute(built, "cpu:0");
    for (int i = 0; i < CHECK_DEVICES; i++) {
        tutti_tensor *value = compute(g, check_devices[i]);
        for (int64_t k = 0; k < 7; k++)
            CHECK_NEAR(tutti_tensor_get(value, k), tutti_tensor_get(expected, k), 1e-6);
        tutti_tensor_release(value);
    }
    check_version(data, size, expected);
    data[size / 2] ^= 1;
    tutti_graph *damaged = NULL;
    CHECK(tutti_graph_deserialize(data, size, &damaged) == TUTTI_CORRUPT);
    tutti_tensor_release(expected);
    tutti_graph_destroy(built);
    tutti_graph_destroy(g);
    free(data);
    return check_end();
}
