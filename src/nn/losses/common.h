/* common.h: what losses share. Everywhere truth and guess have one shape [batch, …, n] and one
 * element type (tutti__targets_for), e is 1e-7, and a loss has shape [batch, …]. */
#ifndef TUTTI_NN_LOSSES_COMMON_H
#define TUTTI_NN_LOSSES_COMMON_H

#include "nn/losses/loss.h"
#include "ops/build.h"

#define TUTTI_LOSS_EPSILON 1e-7

/* Over the last axis. Outputs that are a vector have one number an example already. */
static inline tutti_sym tutti__last_mean(tutti_sym x)
{
    if (!x.node || tutti_sym_type(x).rank < 2)
        return x;
    return tutti_mean(x, .axes = TUTTI_AXES(-1));
}
static inline tutti_sym tutti__last_sum(tutti_sym x)
{
    if (!x.node || tutti_sym_type(x).rank < 2)
        return x;
    return tutti_sum(x, .axes = TUTTI_AXES(-1));
}

static inline tutti_sym tutti__at_least(tutti_sym x, double least)
{
    return tutti_maximum(x, least);
}

/* Targets drawn to `even`, the value that says nothing: y (1 - s) + even s. */
static inline tutti_sym tutti__smooth(tutti_sym truth, double smoothing, double even)
{
    if (smoothing == 0)
        return truth;
    return tutti_add(tutti_mul(truth, 1 - smoothing), even * smoothing);
}

/* -(y log p + (1 - y) log(1 - p)), p held in [e, 1 - e]. */
static inline tutti_sym tutti__binary_cross(tutti_sym truth, tutti_sym guess)
{
    tutti_sym p = tutti_clip(guess, TUTTI_LOSS_EPSILON, 1 - TUTTI_LOSS_EPSILON);
    tutti_sym yes = tutti_mul(truth, tutti_log(p));
    tutti_sym no = tutti_mul(tutti_add(tutti_neg(truth), 1), tutti_log(tutti_add(tutti_neg(p), 1)));
    return tutti_neg(tutti_add(yes, no));
}

/* Targets for hinge losses: where all are 0 or 1 they become -1 or 1. */
static inline tutti_sym tutti__hinge_targets(tutti_sym truth)
{
    tutti_sym zero = tutti__scalar_like(truth, 0), one = tutti__scalar_like(truth, 1);
    tutti_sym binary =
        tutti_all(tutti_logical_or(tutti_equal(truth, zero), tutti_equal(truth, one)));
    return tutti_where(binary, tutti_add(tutti_mul(truth, 2), -1), truth);
}

#endif
