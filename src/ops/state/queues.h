/* queues.h: what the queue operators share. Input 0 is the queue's handle; its view's data is the
 * tutti_queue itself. Attribute "types" repeats the types of the queue's components, so that shape
 * rules know them. */
#ifndef TUTTI_OPS_STATE_QUEUES_H
#define TUTTI_OPS_STATE_QUEUES_H

#include "ops/state/state.h"
#include "tensor/queue.h"

#define TUTTI_QUEUE_FLAGS                                                                          \
    (TUTTI_OP_BLOCKING | TUTTI_OP_STATEFUL | TUTTI_OP_HOST | TUTTI_OP_TAKES_HANDLE |               \
     TUTTI_OP_NO_GRADIENT)

tutti_status tutti__need_queue(const tutti_infer *node);
/* Attribute "types". */
int tutti__queue_types(const tutti_attr *attrs, int count, const tutti_type **ret_types);
/* `type` with a new axis 0 of size `rows`. */
tutti_status tutti__queue_stacked(const tutti_infer *node, const tutti_type *type, int64_t rows,
                                  tutti_type *ret);

/* A number of tuples. */
tutti_status tutti__infer_queue_count(tutti_infer *node);
/* Inputs after the queue are the components, stacked when `many`. */
tutti_status tutti__infer_enqueue(tutti_infer *node, bool many);
/* Outputs are the components, stacked by `rows` when `many`. */
tutti_status tutti__infer_dequeue(tutti_infer *node, bool many, int64_t rows);

/* The queue, which must have as many components as the call handles. */
tutti_status tutti__queue_of_call(const tutti_kernel_call *call, int components, tutti_queue **ret);
/* Until the run's deadline, or until it has failed elsewhere. */
tutti_queue_wait tutti__queue_wait_of(const tutti_kernel_call *call);
/* Copies of the components, one reference each. */
tutti_status tutti__queue_take_inputs(const tutti_kernel_call *call, tutti_tensor **ret_tuple);
/* Fills the outputs and releases the tuple. */
tutti_status tutti__queue_give_outputs(const tutti_kernel_call *call, tutti_tensor **tuple);
void tutti__queue_release_tuple(int count, tutti_tensor **tuple);

/* Builds an operator on a queue: adds attribute "types" from the queue's node. */
tutti_sym tutti__queue_build(const tutti_op *op, tutti_sym queue, int count,
                             const tutti_sym *components, const tutti_attr *own);

#define TUTTI_QUEUE_MAX_COMPONENTS 64

#endif
