/* dequeue_up_to.c: up to n tuples out of a queue, stacked. */
#include "ops/state/queues.h"

static tutti_status dequeue_up_to_infer(tutti_infer *node)
{
    if (RULE_INT(node, "n") < 0)
        return RULE_FAIL(node, TUTTI_INVALID, "n is %lld, the number of tuples is not negative",
                         (long long)RULE_INT(node, "n"));
    return tutti__infer_dequeue(node, true, TUTTI_ANY);
}

static tutti_status dequeue_up_to_reference(const tutti_kernel_call *call)
{
    tutti_queue *queue;
    tutti_tensor *tuple[TUTTI_QUEUE_MAX_COMPONENTS];
    tutti_queue_wait wait = tutti__queue_wait_of(call);
    TUTTI_TRY(tutti__queue_of_call(call, call->output_count, &queue));
    TUTTI_TRY(tutti__queue_dequeue_up_to(queue, RULE_INT(call, "n"), wait, tuple));
    return tutti__queue_give_outputs(call, tuple);
}

static const tutti_attr_spec attrs[] = {
    {"types", TUTTI_ATTR_TYPES, NULL},
    {"n", TUTTI_ATTR_INT, NULL},
    {0},
};

extern const tutti_op tutti_op_dequeue_up_to;

tutti_sym(tutti_dequeue_up_to)(tutti_sym queue, int64_t n)
{
    return tutti__queue_build(&tutti_op_dequeue_up_to, queue, 0, NULL, &TUTTI_INT("n", n));
}

const tutti_op tutti_op_dequeue_up_to = {
    .struct_size = sizeof(tutti_op),
    .name = "dequeue_up_to",
    .version = 1,
    .doc = "dequeue_up_to(q): as dequeue_many; 1 to n tuples when q is closed",
    .category = "state",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = -1,
    .flags = TUTTI_QUEUE_FLAGS | TUTTI_OP_DYNAMIC,
    .attrs = attrs,
    .infer = dequeue_up_to_infer,
    .reference = dequeue_up_to_reference,
};
