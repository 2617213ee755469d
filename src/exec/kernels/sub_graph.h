/* sub_graph.h: lists of tensors, and calls of sub-graphs with them. */
#ifndef TUTTI_EXEC_KERNELS_SUB_GRAPH_H
#define TUTTI_EXEC_KERNELS_SUB_GRAPH_H

#include "exec/kernels/host.h"

typedef struct tutti_values {
    int count;
    tutti_tensor **list; /* each with one reference of the list's */
} tutti_values;

/* Tensors over a call's inputs [first, first + count). */
tutti_status tutti__values_borrow(const tutti_kernel_call *call, int first, int count,
                                  tutti_values *ret);
/* Runs a sub-graph on the call's device. */
tutti_status tutti__values_call(const tutti_kernel_call *call, tutti_graph *body,
                                const tutti_values *inputs, tutti_values *ret);
void tutti__values_free(tutti_values *values);

/* One round after another of the loop that a call describes. `each` (optional) sees the values at
 * the start of each round. ret: the last values of the loop variables. */
tutti_status tutti__loop_run(const tutti_kernel_call *call,
                             tutti_status (*each)(void *context, const tutti_values *values),
                             void *context, tutti_values *ret);

#endif
