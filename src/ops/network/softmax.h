/* softmax.h: rows of numbers and their exponentials; shared by softmax, log_softmax and the
 * cross-entropies. An exponential or logarithm counts as 16 FLOPs. */
#ifndef TUTTI_OPS_NETWORK_SOFTMAX_H
#define TUTTI_OPS_NETWORK_SOFTMAX_H

#include <math.h>

#include "ops/network/network.h"

#define EXP_FLOPS 16.0

/* log(sum(exp(x))) = highest + rest, apart: where numbers are large their sum has no digits left
 * for the rest. */
typedef struct tutti_log_sum {
    double highest, rest;
} tutti_log_sum;

/* Of `count` numbers that stand `stride` apart; -inf for none. */
static inline tutti_log_sum tutti__log_sum_exp(int64_t count, int64_t stride, const double *x)
{
    double highest = -HUGE_VAL, sum = 0;
    for (int64_t i = 0; i < count; i++)
        if (x[i * stride] > highest || isnan(x[i * stride]))
            highest = x[i * stride];
    if (isinf(highest) || isnan(highest))
        return (tutti_log_sum){highest, 0};
    for (int64_t i = 0; i < count; i++)
        sum += exp(x[i * stride] - highest);
    return (tutti_log_sum){highest, log(sum)};
}

/* x - log(sum(exp(x))) */
static inline double tutti__log_share(double x, tutti_log_sum sum)
{
    return (x - sum.highest) - sum.rest;
}

/* The builder of both: along the last axis, or the one that is named. */
tutti_sym tutti__softmax_along(const tutti_op *op, tutti_sym x, const tutti_axes *axes);
/* softmax and log_softmax: attribute axis; y = each(log_softmax of x) along it. */
tutti_status tutti__softmax_infer(tutti_infer *node);
tutti_status tutti__softmax_run(const tutti_kernel_call *call, const double *x, double *y,
                                double (*each)(double log_share));
int tutti__softmax_split(const tutti_infer *node, int capacity, tutti_split *ret);

/* Losses of rows: logits [.., classes] (input 0) give one number for each row. `last`: how many of
 * the last axis's dimensions input 1 has (1: labels are probabilities; 0: labels are integers). */
tutti_status tutti__row_loss_infer(tutti_infer *node, int last);
/* Cut along each axis but the classes. */
int tutti__row_loss_split(const tutti_infer *node, int capacity, tutti_split *ret);
/* Rows and classes of logits. */
void tutti__row_loss_matrix(const tutti_view *logits, int64_t *ret_rows, int64_t *ret_classes);

/* Programs for classes that are split: softmax_blocks.c. */
tutti_status tutti__softmax_expand_on(tutti_expansion *node);
tutti_status tutti__log_softmax_expand_on(tutti_expansion *node);
tutti_status tutti__softmax_cross_entropy_expand_on(tutti_expansion *node);
tutti_status tutti__sparse_cross_entropy_expand_on(tutti_expansion *node);
tutti_status tutti__sparse_cross_entropy_backward_expand_on(tutti_expansion *node);

#endif
