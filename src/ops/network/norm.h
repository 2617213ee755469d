/* norm.h: what batch_norm, layer_norm and rms_norm share. */
#ifndef TUTTI_OPS_NETWORK_NORM_H
#define TUTTI_OPS_NETWORK_NORM_H

#include <math.h>
#include <stdio.h>

#include "ops/network/network.h"

/* Inputs [first, first + count) are [channels], the last dimension of input 0. */
tutti_status tutti__norm_infer(const tutti_infer *node, int first, int count,
                               tutti_type *ret_channels);

/* Rows and columns of x seen as a matrix [elements / channels, channels]. */
void tutti__norm_matrix(const tutti_view *x, int64_t *ret_rows, int64_t *ret_columns);

/* Mean and population variance of one row. */
void tutti__row_moments(int64_t count, const double *x, double *ret_mean, double *ret_variance);

double tutti__epsilon(const tutti_normalize_options *given, double fallback);
/* Refuses those below 0, and NaN. */
tutti_status tutti__epsilon_check(double epsilon);
/* For norms that are made of other operators: false when x is poison, or becomes it by an epsilon
 * that is refused. */
bool tutti__epsilon_take(tutti_sym x, const char *op, const tutti_normalize_options *given,
                         double fallback, double *ret);

/* Ways to cut an operator that works row by row along the last axis: every axis but the last of the
 * inputs whose bit is set in `cut_inputs`; outputs whose bit is set in `cut_outputs` are cut too,
 * the others are partial sums. */
int tutti__split_rows(const tutti_infer *node, unsigned cut_inputs, unsigned cut_outputs,
                      int capacity, tutti_split *ret);

/* Gradient of a backward operator (x, scale, grad) -> (dx, dscale[, doffset]) along the last axis,
 * as nodes that can be differentiated again, in 32 bits for 16, whose range powers of r leave;
 * `centred`: the mean is taken off (layer_norm). */
tutti_status tutti__norm_second_gradient(tutti_gradient_call *node, bool centred);

#endif
