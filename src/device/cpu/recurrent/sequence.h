/* sequence.h: recurrent networks over sequences.
 *
 * Forward: x kernel for all times is one product. Then the batch is cut into groups of rows, by
 * shape; a group walks through time on one thread, with h recurrent as one product for each step.
 * Backward: groups walk back and leave da (and db) of all times; the gradients of the weights are
 * products over all steps at the end. */
#ifndef TUTTI_DEVICE_CPU_RECURRENT_SEQUENCE_H
#define TUTTI_DEVICE_CPU_RECURRENT_SEQUENCE_H

#include "device/cpu/recurrent/cells.h"
#include "program/kernel.h"

/* Whether the node is of floats and not empty. */
bool tutti__sequence_suits(const tutti_kernel_query *query, const tutti_cell *cell);

tutti_status tutti__sequence_prepare(const tutti_kernel_query *query, const tutti_cell *cell,
                                     bool backward, void **ret_plan);
size_t tutti__sequence_workspace(const tutti_kernel_query *query, const tutti_cell *cell,
                                 bool backward);
tutti_status tutti__sequence_run(const tutti_call *call);
tutti_status tutti__sequence_run_backward(const tutti_call *call);

#endif
