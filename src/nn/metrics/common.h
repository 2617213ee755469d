/* common.h: what metrics share. */
#ifndef TUTTI_NN_METRICS_COMMON_H
#define TUTTI_NN_METRICS_COMMON_H

#include <math.h>

#include "nn/metrics/metric.h"

/* The threshold of yes, in what the outputs are: sigmoid(x) > t where x > log(t / (1 - t)). */
static inline double tutti__metric_threshold(const tutti_metric *metric)
{
    double threshold = metric->threshold != 0 ? metric->threshold : 0.5;
    return metric->from_logits ? log(threshold / (1 - threshold)) : threshold;
}

/* Answers and targets as yes or no, elements by elements: f32 of the outputs' shape, and what each
 * element weighs. */
typedef struct tutti_yes_no {
    tutti_sym said, is, weight;
} tutti_yes_no;
static inline tutti_yes_no tutti__yes_no(const tutti_metric_build *build)
{
    tutti_sym truth = tutti__metric_targets(build, false);
    double threshold = tutti__metric_threshold(build->metric);
    tutti_sym said = tutti_greater(build->guess, threshold);
    tutti_sym is = tutti_not_equal(truth, 0);
    tutti_yes_no result = {tutti_cast(said, TUTTI_F32), tutti_cast(is, TUTTI_F32), TUTTI_NO_SYM};
    result.weight =
        build->weights.node
            ? tutti_broadcast_like(tutti__weights_like(build->weights, result.said), result.said)
            : tutti_ones_like(result.said);
    return result;
}

/* 1 - x. */
static inline tutti_sym tutti__rest(tutti_sym x)
{
    return tutti_add(tutti_neg(x), 1);
}

/* The sum of weights of elements where both are 1. */
static inline tutti_sym tutti__count_both(tutti_sym a, tutti_sym b, tutti_sym weight)
{
    return tutti_sum(tutti_mul(tutti_mul(a, b), weight));
}

/* a / b, and 0 for nothing out of nothing. */
static inline double tutti__share(double a, double b)
{
    return b != 0 ? a / b : 0;
}

/* Right classes [batch, …]: class numbers, or where a one-hot target is largest. */
static inline tutti_sym tutti__classes(tutti_sym truth, tutti_sym guess)
{
    tutti_type have = tutti_sym_type(truth), want = tutti_sym_type(guess);
    bool one_hot = have.rank == want.rank && have.rank > 0 && have.dims[have.rank - 1] != 1;
    tutti_sym classes = one_hot ? tutti_argmax(truth, -1) : tutti__targets_for(truth, guess, true);
    return classes.node && tutti_sym_type(classes).dtype != TUTTI_I64
               ? tutti_cast(classes, TUTTI_I64)
               : classes;
}

/* How much weight falls on each number of `places` (i64, any shape; 0 … count - 1): f32 [count].
 * `weights` of the shape of `places`. */
static inline tutti_sym tutti__tally(tutti_sym places, tutti_sym weights, int64_t count)
{
    return tutti_scatter_nd(tutti_reshape(places, -1, 1), tutti_reshape(weights, -1), count);
}

#endif
