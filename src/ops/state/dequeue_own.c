/* dequeue_own.c: what dequeue_many becomes in a process of several: the process's own rows of the
 * batch, and whether its queue had them. It does not fail when the queue is closed with fewer left,
 * so that the process still meets the others in this step; need_rows ends the step on all. */
#include "ops/state/queues.h"

static tutti_status dequeue_own_infer(tutti_infer *node)
{
    const tutti_type *types;
    int count = tutti__queue_types(node->attrs, node->attr_count, &types);
    TUTTI_TRY(tutti__need_queue(node));
    if (count != node->output_count || count < 2 || RULE_INT(node, "n") < 0)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "needs the types of components and of what is missing, and n >= 0");
    for (int i = 0; i < count - 1; i++)
        TUTTI_TRY(tutti__queue_stacked(node, &types[i], RULE_INT(node, "n"), &node->outputs[i]));
    node->outputs[count - 1] = tutti_type_make(TUTTI_F32, 0, NULL);
    return TUTTI_OK;
}

/* Zeros of the outputs' types, whose dimensions are known. */
static tutti_status make_zeros(const tutti_kernel_call *call, int count, tutti_tensor **ret_tuple)
{
    for (int i = 0; i < count; i++) {
        const tutti_type *types;
        int64_t dims[TUTTI_MAX_RANK] = {RULE_INT(call, "n")};
        tutti__queue_types(call->attrs, call->attr_count, &types);
        memcpy(dims + 1, types[i].dims, (size_t)types[i].rank * sizeof *dims);
        tutti_status status =
            tutti_tensor_create(types[i].dtype, types[i].rank + 1, dims, &ret_tuple[i]);
        if (status != TUTTI_OK) {
            tutti__queue_release_tuple(i, ret_tuple);
            return status;
        }
    }
    return TUTTI_OK;
}

static tutti_status dequeue_own_reference(const tutti_kernel_call *call)
{
    tutti_queue *queue;
    tutti_tensor *tuple[TUTTI_QUEUE_MAX_COMPONENTS + 1];
    int count = call->output_count - 1;
    TUTTI_TRY(tutti__queue_of_call(call, count, &queue));
    tutti_status status =
        tutti__queue_dequeue_many(queue, RULE_INT(call, "n"), tutti__queue_wait_of(call), tuple);
    bool missing = status == TUTTI_OUT_OF_RANGE;
    TUTTI_TRY(missing ? make_zeros(call, count, tuple) : status);
    status = tutti_tensor_create(TUTTI_F32, 0, NULL, &tuple[count]);
    if (status != TUTTI_OK) {
        tutti__queue_release_tuple(count, tuple);
        return status;
    }
    tutti_tensor_set(tuple[count], 0, missing ? 1 : 0);
    return tutti__queue_give_outputs(call, tuple);
}

static const tutti_attr_spec attrs[] = {
    {"types", TUTTI_ATTR_TYPES, NULL},
    {"n", TUTTI_ATTR_INT, NULL},
    {0},
};

const tutti_op tutti_op_dequeue_own = {
    .struct_size = sizeof(tutti_op),
    .name = "dequeue_own",
    .version = 1,
    .doc = "dequeue_own(q): ys, missing = the first n tuples of q, stacked along axis 0, and 0; or "
           "zeros and 1 when q is closed with fewer left",
    .category = "state",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = -1,
    .flags = TUTTI_QUEUE_FLAGS | TUTTI_OP_DYNAMIC,
    .attrs = attrs,
    .infer = dequeue_own_infer,
    .reference = dequeue_own_reference,
};
