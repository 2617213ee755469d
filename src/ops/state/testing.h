/* testing.h: short ways to write tests of operators on state: values, and runs by the reference. */
#ifndef TUTTI_OPS_STATE_TESTING_H
#define TUTTI_OPS_STATE_TESTING_H

#include "base/test.h"
#include "ops/reference.h"
#include "ops/state/state.h"

static inline tutti_graph *new_graph(void)
{
    tutti_graph *graph = NULL;
    CHECK_OK(tutti_graph_create(&graph));
    return graph;
}

/* A tensor of numbers: tensor_of(TUTTI_F64, (double[]){1, 2}, 1, 2) is [2]. */
static inline tutti_tensor *tensor_of(tutti_dtype dtype, const double *values, int rank,
                                      const int64_t *dims)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_create(dtype, rank, dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, values[i]);
    return tensor;
}

#define VECTOR(dtype, ...)                                                                         \
    tensor_of(dtype, (double[]){__VA_ARGS__}, 1,                                                   \
              (int64_t[]){(int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double))})
#define MATRIX(dtype, rows, columns, ...)                                                          \
    tensor_of(dtype, (double[]){__VA_ARGS__}, 2, (int64_t[]){rows, columns})
#define SCALAR(dtype, value) tensor_of(dtype, (double[]){value}, 0, NULL)

/* A feed by symbol; the tensor stays the caller's. */
#define FEED(sym, tensor) ((tutti_reference_feed){tutti__edge(sym), (tensor)})
#define FEEDS(...)                                                                                 \
    (int)(sizeof((tutti_reference_feed[]){__VA_ARGS__}) / sizeof(tutti_reference_feed)),           \
        (tutti_reference_feed[])                                                                   \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static inline tutti_status try_fetch(tutti_sym sym, int feed_count,
                                     const tutti_reference_feed *feeds, tutti_tensor **ret)
{
    tutti_edge edge = tutti__edge(sym);
    TUTTI_TRY(tutti_graph_check(tutti_sym_graph(sym)));
    return tutti__reference_run(sym.node->graph, feed_count, feeds, 1, &edge, ret);
}

/* The value of a symbol; the caller releases it. */
static inline tutti_tensor *fetch(tutti_sym sym, int feed_count, const tutti_reference_feed *feeds)
{
    tutti_tensor *value = NULL;
    if (!tutti_sym_ok(sym))
        tutti__test_fail(__FILE__, __LINE__, "fetch of poison: %s", tutti_error_message());
    CHECK_OK(try_fetch(sym, feed_count, feeds, &value));
    return value;
}

/* One element of a symbol's value. */
static inline double fetch_element(tutti_sym sym, int64_t index, int feed_count,
                                   const tutti_reference_feed *feeds)
{
    tutti_tensor *value = fetch(sym, feed_count, feeds);
    CHECK(index < tutti_tensor_count(value));
    double element = tutti_tensor_get(value, index);
    tutti_tensor_release(value);
    return element;
}

static inline void check_values(tutti_tensor *tensor, int count, const double *expected,
                                double tolerance)
{
    CHECK_INT(tutti_tensor_count(tensor), count);
    for (int i = 0; i < count; i++)
        CHECK_NEAR(tutti_tensor_get(tensor, i), expected[i], tolerance);
}
#define CHECK_VALUES(tensor, tolerance, ...)                                                       \
    check_values(tensor, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),                  \
                 (double[]){__VA_ARGS__}, tolerance)

/* The graph's first mistake contains this. Destroys the graph. */
static inline void check_mistake(tutti_graph *graph, tutti_status status, const char *part)
{
    CHECK_STATUS(tutti_graph_check(graph), status);
    CHECK_CONTAINS(tutti_error_message(), part);
    tutti_graph_destroy(graph);
}

#endif
