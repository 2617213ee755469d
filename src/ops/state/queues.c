/* queues.c: what the queue operators share; see queues.h. */
#include "ops/state/queues.h"

#include "ops/call.h"
#include "tensor/tensor.h"

tutti_status tutti__need_queue(const tutti_infer *node)
{
    if (!tutti__is_queue_type(&node->inputs[0]))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "input 0 is no queue; give what tutti_fifo_queue returned");
    return TUTTI_OK;
}

tutti_status tutti__infer_queue_count(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_queue(node));
    node->outputs[0] = tutti_type_make(TUTTI_I64, 0, NULL);
    return TUTTI_OK;
}

int tutti__queue_types(const tutti_attr *attrs, int count, const tutti_type **ret_types)
{
    const tutti_attr *attr = tutti_attr_find(attrs, count, "types");
    *ret_types = attr ? attr->value.types : NULL;
    return attr ? attr->count : 0;
}

tutti_status tutti__queue_stacked(const tutti_infer *node, const tutti_type *type, int64_t rows,
                                  tutti_type *ret)
{
    if (type->rank == TUTTI_MAX_RANK)
        return RULE_FAIL(node, TUTTI_INVALID, "components of %d dimensions cannot be stacked",
                         TUTTI_MAX_RANK);
    tutti_type stacked = {.dtype = type->dtype, .rank = type->rank + 1, .dims = {rows}};
    memcpy(stacked.dims + 1, type->dims, (size_t)type->rank * sizeof *type->dims);
    *ret = stacked;
    return TUTTI_OK;
}

tutti_status tutti__infer_enqueue(tutti_infer *node, bool many)
{
    const tutti_type *types;
    int count = tutti__queue_types(node->attrs, node->attr_count, &types);
    int64_t rows = TUTTI_ANY;
    TUTTI_TRY(tutti__need_queue(node));
    if (node->input_count - 1 != count)
        return RULE_FAIL(node, TUTTI_INVALID, "the queue's tuples have %d components, %d are given",
                         count, node->input_count - 1);
    for (int i = 0; i < count; i++) {
        tutti_type expected = types[i];
        if (many)
            TUTTI_TRY(tutti__queue_stacked(node, &types[i], rows, &expected));
        TUTTI_TRY(tutti__need_type(node, 1 + i, &expected, "the queue's component"));
        if (many && rows == TUTTI_ANY)
            rows = node->inputs[1 + i].dims[0];
    }
    return TUTTI_OK;
}

tutti_status tutti__infer_dequeue(tutti_infer *node, bool many, int64_t rows)
{
    const tutti_type *types;
    int count = tutti__queue_types(node->attrs, node->attr_count, &types);
    TUTTI_TRY(tutti__need_queue(node));
    if (count != node->output_count)
        return RULE_FAIL(node, TUTTI_INVALID, "has %d outputs for %d components",
                         node->output_count, count);
    for (int i = 0; i < count; i++) {
        node->outputs[i] = types[i];
        if (many)
            TUTTI_TRY(tutti__queue_stacked(node, &types[i], rows, &node->outputs[i]));
    }
    return TUTTI_OK;
}

tutti_status tutti__queue_of_call(const tutti_kernel_call *call, int components, tutti_queue **ret)
{
    tutti_queue *queue = call->inputs[0].data;
    if (!queue)
        return RULE_FAIL(call, TUTTI_UNINITIALIZED, "no queue is bound to its handle");
    if (components > TUTTI_QUEUE_MAX_COMPONENTS ||
        (components >= 0 && tutti__queue_component_count(queue) != components))
        return RULE_FAIL(call, TUTTI_INVALID, "handles tuples of %d components, the queue has %d",
                         components, tutti__queue_component_count(queue));
    *ret = queue;
    return TUTTI_OK;
}

tutti_queue_wait tutti__queue_wait_of(const tutti_kernel_call *call)
{
    const tutti_call_host *host = call->context;
    return (tutti_queue_wait){.deadline = call->deadline,
                              .cancelled = host ? host->cancelled : NULL};
}

void tutti__queue_release_tuple(int count, tutti_tensor **tuple)
{
    for (int i = 0; i < count; i++)
        tutti_tensor_release(tuple[i]);
}

tutti_status tutti__queue_take_inputs(const tutti_kernel_call *call, tutti_tensor **ret_tuple)
{
    for (int i = 1; i < call->input_count; i++) {
        const tutti_view *view = &call->inputs[i];
        tutti_status status =
            tutti_tensor_from(view->dtype, view->rank, view->dims, view->data, &ret_tuple[i - 1]);
        if (status != TUTTI_OK) {
            tutti__queue_release_tuple(i - 1, ret_tuple);
            return status;
        }
    }
    return TUTTI_OK;
}

/* Into the output's memory, or as the output itself where whoever runs the kernel can take it. */
static tutti_status give(const tutti_kernel_call *call, int index, tutti_tensor *tensor)
{
    const tutti_call_host *host = call->context;
    const tutti_type *type = tutti_tensor_type(tensor);
    const tutti_view *out = &call->outputs[index];
    tutti_tensor *contiguous;
    char text[TUTTI_TYPE_TEXT], wanted_text[TUTTI_TYPE_TEXT];
    tutti_type wanted = {.dtype = out->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++)
        wanted.dims[i] = out->dims && out->rank == type->rank ? out->dims[i] : TUTTI_ANY;
    if (!tutti__types_agree(type, &wanted) || (out->dims && out->rank != type->rank))
        return RULE_FAIL(call, TUTTI_INVALID,
                         "component %d in the queue is %s, the node expects %s", index,
                         tutti_type_text(type, text), tutti_type_text(&wanted, wanted_text));
    if (host && host->give)
        return host->give(call, index, tensor);
    if (type->dtype == TUTTI_STRING)
        return RULE_FAIL(call, TUTTI_UNSUPPORTED, "this device takes no strings out of queues");
    TUTTI_TRY(tutti_tensor_contiguous(tensor, &contiguous));
    tutti_status status = tutti__call_shape(call, index, type->rank, type->dims);
    if (status == TUTTI_OK) {
        tutti_view from = tutti__tensor_view_of(contiguous);
        tutti__view_copy(&call->outputs[index], &from);
    }
    tutti_tensor_release(contiguous);
    return status;
}

tutti_status tutti__queue_give_outputs(const tutti_kernel_call *call, tutti_tensor **tuple)
{
    tutti_status status = TUTTI_OK;
    for (int i = 0; status == TUTTI_OK && i < call->output_count; i++)
        status = give(call, i, tuple[i]);
    tutti__queue_release_tuple(call->output_count, tuple);
    return status;
}

/* The mistake is recorded in the graph of the components, if there is one. */
static tutti_sym refuse_no_queue(const tutti_op *op, tutti_sym queue, int count,
                                 const tutti_sym *components)
{
    tutti_graph *graph = tutti__graph_of(count, components);
    if (!graph)
        return tutti__poison_of(op->name, 1, &queue);
    tutti_status status = tutti__sym_usable(graph, queue, "the queue", -1);
    return tutti__poison(graph, status, "%s: %s", op->name, tutti_error_message());
}

tutti_sym tutti__queue_build(const tutti_op *op, tutti_sym queue, int count,
                             const tutti_sym *components, const tutti_attr *own)
{
    tutti_sym inputs[1 + TUTTI_QUEUE_MAX_COMPONENTS] = {queue};
    tutti_attr attrs[2];
    if (!tutti_sym_ok(queue))
        return refuse_no_queue(op, queue, count, components);
    const tutti_attr *types = tutti_attr_find(queue.node->attrs, queue.node->attr_count, "types");
    if (!tutti__is(queue.node, "queue") || !types)
        return tutti__poison(queue.node->graph, TUTTI_INVALID,
                             "%s: '%s' is no queue; give what tutti_fifo_queue returned", op->name,
                             queue.node->name);
    if (count < 0 || count > TUTTI_QUEUE_MAX_COMPONENTS)
        return tutti__poison(queue.node->graph, TUTTI_INVALID,
                             "%s: takes 1 to %d components, not %d", op->name,
                             TUTTI_QUEUE_MAX_COMPONENTS, count);
    if (count > 0 && !components)
        return tutti__poison(queue.node->graph, TUTTI_INVALID,
                             "%s: the list of %d components is NULL", op->name, count);
    for (int i = 0; i < count; i++)
        inputs[1 + i] = tutti__value_of(components[i]);
    attrs[0] = *types;
    if (own)
        attrs[1] = *own;
    return tutti__nary(op, 1 + count, inputs, own ? 2 : 1, attrs);
}
