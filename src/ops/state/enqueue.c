/* enqueue.c: one tuple into a queue. */
#include "ops/state/queues.h"

static tutti_status enqueue_infer(tutti_infer *node)
{
    return tutti__infer_enqueue(node, false);
}

static tutti_status enqueue_reference(const tutti_kernel_call *call)
{
    tutti_queue *queue;
    tutti_tensor *tuple[TUTTI_QUEUE_MAX_COMPONENTS];
    int count = call->input_count - 1;
    TUTTI_TRY(tutti__queue_of_call(call, count, &queue));
    TUTTI_TRY(tutti__queue_take_inputs(call, tuple));
    tutti_queue_wait wait = tutti__queue_wait_of(call);
    tutti_status status = tutti__queue_enqueue(queue, tuple, wait);
    tutti__queue_release_tuple(count, tuple);
    return status;
}

static const tutti_attr_spec attrs[] = {
    {"types", TUTTI_ATTR_TYPES, NULL},
    {0},
};

extern const tutti_op tutti_op_enqueue;

tutti_sym(tutti_enqueue)(tutti_sym queue, int count, const tutti_sym *components)
{
    return tutti__queue_build(&tutti_op_enqueue, queue, count, components, NULL);
}

const tutti_op tutti_op_enqueue = {
    .struct_size = sizeof(tutti_op),
    .name = "enqueue",
    .version = 1,
    .doc = "enqueue(q, xs...): puts the tuple xs at the end of q",
    .category = "state",
    .min_inputs = 2,
    .max_inputs = -1,
    .outputs = 0,
    .flags = TUTTI_QUEUE_FLAGS,
    .attrs = attrs,
    .infer = enqueue_infer,
    .reference = enqueue_reference,
};
