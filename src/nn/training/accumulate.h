/* accumulate.h: gradients of several batches, gathered into one step.
 *
 * Each variable has a slot "<variable>/accumulated" (f32; f64 of a variable of f64). For batches of
 * equal size whose losses are means, N batches at factor 1/N are the gradient of the big batch. */
#ifndef TUTTI_NN_TRAINING_ACCUMULATE_H
#define TUTTI_NN_TRAINING_ACCUMULATE_H

#include "graph/graph.h"
#include "tutti/gradients.h"

/* The target of all batches of a step but the last: adds the gradients to the slots. */
tutti_sym tutti__accumulate_add(int count, const tutti_sym *variables, const tutti_grad *grads);
/* For the last batch: ret_grads = factor (slot + gradient), dense and in the variable's type
 * (ret_grads may be grads), and the target that zeroes the slots, to be run in the same step.
 * Entries without a gradient stay so. */
tutti_sym tutti__accumulate_take(int count, const tutti_sym *variables, const tutti_grad *grads,
                                 double factor, tutti_grad *ret_grads);

#endif
