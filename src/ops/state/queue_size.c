/* queue_size.c: how many tuples a queue holds. */
#include "ops/state/queues.h"

static tutti_status queue_size_reference(const tutti_kernel_call *call)
{
    tutti_queue *queue;
    TUTTI_TRY(tutti__queue_of_call(call, -1, &queue));
    tutti_view_set_int(&call->outputs[0], 0, tutti__queue_size(queue));
    return TUTTI_OK;
}

extern const tutti_op tutti_op_queue_size;

tutti_sym(tutti_queue_size)(tutti_sym queue)
{
    return tutti__unary(&tutti_op_queue_size, queue);
}

const tutti_op tutti_op_queue_size = {
    .struct_size = sizeof(tutti_op),
    .name = "queue_size",
    .version = 1,
    .doc = "queue_size(q): y = the number of tuples in q",
    .category = "state",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_HOST | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_NO_GRADIENT,
    .infer = tutti__infer_queue_count,
    .reference = queue_size_reference,
};
