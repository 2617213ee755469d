/* sequence.h: recurrent networks over sequences.
 *
 * Forward: x kernel for all times is one product. Then the batch is cut into groups of rows, by
 * shape; a group walks through time on one thread, with h recurrent as one product for each step.
 * Backward: groups walk back and leave da (and db) of all times; the gradients of the weights are
 * products over all steps at the end.
 *
 * Rounded kernels multiply numbers of bf16 and sum in f32: inputs, weights and states are rounded
 * when they are laid out for a product, gates and states stay f32. What the last products want of a
 * step (da, db, x and h before) is kept as bf16. */
#ifndef TUTTI_DEVICE_CPU_RECURRENT_SEQUENCE_H
#define TUTTI_DEVICE_CPU_RECURRENT_SEQUENCE_H

#include "device/cpu/recurrent/cells.h"
#include "program/kernel.h"

/* What a kernel computes. */
typedef struct tutti_sequence_kind {
    const tutti_cell *cell;
    bool backward;
    bool rounded; /* products of bf16, for nodes whose attribute `products` is "bf16" */
} tutti_sequence_kind;

int tutti__sequence_score(const tutti_kernel_query *query, tutti_sequence_kind kind,
                          const char *isa);
tutti_status tutti__sequence_prepare(const tutti_kernel_query *query, tutti_sequence_kind kind,
                                     void **ret_plan);
size_t tutti__sequence_workspace(const tutti_kernel_query *query, tutti_sequence_kind kind);
tutti_status tutti__sequence_run(const tutti_kernel_call *call);
tutti_status tutti__sequence_run_backward(const tutti_kernel_call *call);

#endif
