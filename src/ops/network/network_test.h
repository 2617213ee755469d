/* network_test.h: short ways to test network operators: a sample's text gives the operands, an
 * array the numbers that must come out. */
#ifndef TUTTI_OPS_NETWORK_NETWORK_TEST_H
#define TUTTI_OPS_NETWORK_NETWORK_TEST_H

#include <math.h>
#include <stdio.h>

#include "base/test.h"
#include "ops/reference.h"
#include "ops/sample.h"
#include "tutti/gradients.h"
#include "tutti/ops.h"

/* 0.6 sin(1.3 i + phase): operands that other frameworks' numbers were computed from. */
static inline tutti_tensor *tutti__test_wave(double phase, int rank, const int64_t *dims)
{
    tutti_tensor *tensor = NULL;
    CHECK_OK(tutti_tensor_create(TUTTI_F64, rank, dims, &tensor));
    for (int64_t i = 0; i < tutti_tensor_count(tensor); i++)
        tutti_tensor_set(tensor, i, 0.6 * sin(1.3 * (double)i + phase));
    return tensor;
}

/* A constant of such numbers in a graph: WAVE(graph, 1, 2, 3) is a [2,3] with phase 1. */
static inline tutti_sym tutti__test_wave_sym(tutti_graph *graph, double phase, int rank,
                                             const int64_t *dims)
{
    tutti_tensor *tensor = tutti__test_wave(phase, rank, dims);
    tutti_sym sym = tutti_constant(graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}
#define WAVE(graph, phase, ...)                                                                    \
    tutti__test_wave_sym(graph, phase, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),  \
                         (int64_t[]){__VA_ARGS__})

/* The value of a symbol whose operands are all constants. */
static inline tutti_tensor *tutti__test_value(tutti_sym sym)
{
    tutti_tensor *value = NULL;
    if (!tutti_sym_ok(sym))
        tutti__test_fail(__FILE__, __LINE__, "poison: %s", tutti_error_message());
    tutti_edge edge = tutti__edge(sym);
    CHECK_OK(tutti__reference_run(tutti_sym_graph(sym), 0, NULL, 1, &edge, &value));
    return value;
}

static inline void tutti__test_numbers(const char *file, int line, tutti_tensor *actual, int count,
                                       const double *expected)
{
    tutti__test_int(file, line, "number of elements", tutti_tensor_count(actual), count);
    for (int i = 0; i < count; i++) {
        char what[40];
        snprintf(what, sizeof what, "element %d", i);
        tutti__test_near(file, line, what, tutti_tensor_get(actual, i), expected[i], 2e-6);
    }
}

/* CHECK_SYM(y, 1, 2, 3): the elements of y, row by row. */
#define CHECK_SYM(sym, ...)                                                                        \
    do {                                                                                           \
        tutti_tensor *check_value_ = tutti__test_value(sym);                                       \
        tutti__test_numbers(__FILE__, __LINE__, check_value_,                                      \
                            (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),               \
                            (double[]){__VA_ARGS__});                                              \
        tutti_tensor_release(check_value_);                                                        \
    } while (0)

/* Runs an operator on a sample's text; outputs go to `ret`, at least as many as it has. */
static inline tutti_status tutti__test_op(const char *op, const char *text, tutti_tensor **ret)
{
    tutti_sample *sample = NULL;
    CHECK(tutti_op_find(op) != NULL);
    TUTTI_TRY(tutti__sample_parse(tutti_op_find(op), text, 1, &sample));
    tutti_status status = tutti__sample_run(sample, ret);
    tutti__sample_free(sample);
    return status;
}

/* CHECK_OP("relu", "f32[2]{=-1,2}", 0, 0, 2): output 0 is 0, 2. */
#define CHECK_OP(op, text, output, ...)                                                            \
    do {                                                                                           \
        tutti_tensor *check_outputs_[TUTTI_SPLIT_SLOTS] = {0};                                     \
        CHECK_OK(tutti__test_op(op, text, check_outputs_));                                        \
        tutti__test_numbers(__FILE__, __LINE__, check_outputs_[output],                            \
                            (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),               \
                            (double[]){__VA_ARGS__});                                              \
        for (size_t i_ = 0; i_ < TUTTI_COUNT(check_outputs_); i_++)                                \
            tutti_tensor_release(check_outputs_[i_]);                                              \
    } while (0)

/* The operator refuses the sample, and says so in these words. */
#define CHECK_REFUSES(op, text, status, words)                                                     \
    do {                                                                                           \
        tutti_tensor *check_outputs_[TUTTI_SPLIT_SLOTS] = {0};                                     \
        CHECK_STATUS(tutti__test_op(op, text, check_outputs_), status);                            \
        CHECK_CONTAINS(tutti_error_message(), words);                                              \
    } while (0)

/* The operator's gradients on a sample's text agree with finite differences up to this order. */
static inline tutti_status tutti__test_gradients(const char *op, const char *text, int orders)
{
    tutti_sample *sample = NULL;
    CHECK(tutti_op_find(op) != NULL);
    TUTTI_TRY(tutti__sample_parse(tutti_op_find(op), text, 1, &sample));
    tutti_status status = tutti__gradient_check(sample, orders);
    tutti__sample_free(sample);
    return status;
}
#define CHECK_GRADIENTS(op, text, orders) CHECK_OK(tutti__test_gradients(op, text, orders))

static inline tutti_graph *tutti__test_graph(void)
{
    tutti_graph *graph = NULL;
    CHECK_OK(tutti_graph_create(&graph));
    return graph;
}

#endif
