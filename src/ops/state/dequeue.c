/* dequeue.c: one tuple out of a queue. */
#include "ops/state/queues.h"

static tutti_status dequeue_infer(tutti_infer *node)
{
    return tutti__infer_dequeue(node, false, 0);
}

static tutti_status dequeue_reference(const tutti_kernel_call *call)
{
    tutti_queue *queue;
    tutti_tensor *tuple[TUTTI_QUEUE_MAX_COMPONENTS];
    tutti_queue_wait wait = tutti__queue_wait_of(call);
    TUTTI_TRY(tutti__queue_of_call(call, call->output_count, &queue));
    TUTTI_TRY(tutti__queue_dequeue(queue, wait, tuple));
    return tutti__queue_give_outputs(call, tuple);
}

static const tutti_attr_spec attrs[] = {
    {"types", TUTTI_ATTR_TYPES, NULL},
    {0},
};

extern const tutti_op tutti_op_dequeue;

tutti_sym(tutti_dequeue)(tutti_sym queue)
{
    return tutti__queue_build(&tutti_op_dequeue, queue, 0, NULL, NULL);
}

const tutti_op tutti_op_dequeue = {
    .struct_size = sizeof(tutti_op),
    .name = "dequeue",
    .version = 1,
    .doc = "dequeue(q): ys = the first tuple of q, which leaves it",
    .category = "state",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = -1,
    .flags = TUTTI_QUEUE_FLAGS | TUTTI_OP_DYNAMIC,
    .attrs = attrs,
    .infer = dequeue_infer,
    .reference = dequeue_reference,
};
