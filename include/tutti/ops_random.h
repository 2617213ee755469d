/* ops_random.h: random numbers. A number is a function of the seed, the node's name, the graph's
 * step counter and the element's index, so a run can be repeated, and a tensor cut in pieces has
 * the same numbers as the whole one. Two nodes differ even with one seed; every step gives new
 * numbers. On a tape, where nodes have no lasting names, one that was not given a name counts by
 * its place among the unnamed random nodes of its step.
 *
 * The step counter is a variable, "tutti/random_counter", made on first use: it begins with 0,
 * every run that draws adds 1, checkpoints hold it, and tutti_session_set goes back or on. */
#ifndef TUTTI_OPS_RANDOM_H
#define TUTTI_OPS_RANDOM_H

#include "tutti/ops_state.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_random_options {
    size_t struct_size;
    int64_t seed;
    const char *name;  /* the operator's */
    tutti_sym like;    /* take the shape of this instead of the type's: for unknown dimensions */
    tutti_sym counter; /* an i64 scalar instead of the graph's step counter */
} tutti_random_options;

/* Uniform in [low, high): tutti_random_uniform(g, 0, 1, TUTTI_TYPE(TUTTI_F32, 64, 10), .seed = 7).
 * Integers too. Numbers and bounds of f16 and bf16 are rounded. */
TUTTI_API tutti_sym tutti_random_uniform_with(tutti_graph *graph, double low, double high,
                                              tutti_type type, const tutti_random_options *options);
#define tutti_random_uniform(graph, low, high, type, ...)                                          \
    TUTTI_AT(tutti_random_uniform_with((graph), (low), (high), (type),                             \
                                       TUTTI_OPTIONS(tutti_random_options, __VA_ARGS__)))
/* Normal, of this mean and standard deviation. */
TUTTI_API tutti_sym tutti_random_normal_with(tutti_graph *graph, double mean, double stddev,
                                             tutti_type type, const tutti_random_options *options);
#define tutti_random_normal(graph, mean, stddev, type, ...)                                        \
    TUTTI_AT(tutti_random_normal_with((graph), (mean), (stddev), (type),                           \
                                      TUTTI_OPTIONS(tutti_random_options, __VA_ARGS__)))
/* Normal, drawn again beyond two standard deviations. */
TUTTI_API tutti_sym tutti_random_truncated_normal_with(tutti_graph *graph, double mean,
                                                       double stddev, tutti_type type,
                                                       const tutti_random_options *options);
#define tutti_random_truncated_normal(graph, mean, stddev, type, ...)                              \
    TUTTI_AT(tutti_random_truncated_normal_with((graph), (mean), (stddev), (type),                 \
                                                TUTTI_OPTIONS(tutti_random_options, __VA_ARGS__)))
/* 1 (or true) with probability p, else 0. */
TUTTI_API tutti_sym tutti_random_bernoulli_with(tutti_graph *graph, double p, tutti_type type,
                                                const tutti_random_options *options);
#define tutti_random_bernoulli(graph, p, type, ...)                                                \
    TUTTI_AT(tutti_random_bernoulli_with((graph), (p), (type),                                     \
                                         TUTTI_OPTIONS(tutti_random_options, __VA_ARGS__)))
/* n classes per row of logits [batch, classes], class c with probability softmax(logits)[c]:
 * i64[batch, n]. */
TUTTI_API tutti_sym tutti_random_categorical_with(tutti_sym logits, int64_t n,
                                                  const tutti_random_options *options);
#define tutti_random_categorical(logits, n, ...)                                                   \
    TUTTI_AT(tutti_random_categorical_with((logits), (n),                                          \
                                           TUTTI_OPTIONS(tutti_random_options, __VA_ARGS__)))
/* The rows of x (axis 0) in random order. Output 1 is that order, i64[rows]: y[i] = x[order[i]]. */
TUTTI_API tutti_sym tutti_random_shuffle_with(tutti_sym x, const tutti_random_options *options);
#define tutti_random_shuffle(x, ...)                                                               \
    TUTTI_AT(tutti_random_shuffle_with((x), TUTTI_OPTIONS(tutti_random_options, __VA_ARGS__)))

#ifdef __cplusplus
}
#endif
#endif
