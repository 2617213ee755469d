/* queue_close.c: no more tuples come into a queue. */
#include "ops/state/queues.h"

static tutti_status queue_close_infer(tutti_infer *node)
{
    return tutti__need_queue(node);
}

static tutti_status queue_close_reference(const tutti_kernel_call *call)
{
    tutti_queue *queue;
    TUTTI_TRY(tutti__queue_of_call(call, -1, &queue));
    tutti__queue_close(queue, RULE_INT(call, "cancel") != 0);
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    {"cancel", TUTTI_ATTR_INT, "0"}, /* 1: enqueues that wait fail */
    {0},
};

extern const tutti_op tutti_op_queue_close;

tutti_sym(tutti_queue_close)(tutti_sym queue, bool cancel)
{
    return tutti__nary(&tutti_op_queue_close, 1, &queue, 1, &TUTTI_INT("cancel", cancel));
}

const tutti_op tutti_op_queue_close = {
    .struct_size = sizeof(tutti_op),
    .name = "queue_close",
    .version = 1,
    .doc = "queue_close(q): q takes no more tuples; what is in it may still be taken out",
    .category = "state",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 0,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_HOST | TUTTI_OP_TAKES_HANDLE | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = queue_close_infer,
    .reference = queue_close_reference,
};
