/* queue.c: a first-in-first-out queue of tuples, seen as a handle. */
#include "ops/state/queues.h"

static tutti_status infer(tutti_infer *node)
{
    const tutti_type *types;
    char text[TUTTI_TYPE_TEXT];
    int count = tutti__queue_types(node->attrs, node->attr_count, &types);
    if (count < 1 || count > TUTTI_QUEUE_MAX_COMPONENTS)
        return RULE_FAIL(node, TUTTI_INVALID, "has tuples of %d components, needs 1 to %d", count,
                         TUTTI_QUEUE_MAX_COMPONENTS);
    if (RULE_INT(node, "capacity") < 0)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "capacity is %lld, needs 1 or more, or 0 for no bound",
                         (long long)RULE_INT(node, "capacity"));
    for (int i = 0; i < count; i++)
        if (types[i].dtype <= TUTTI_NO_DTYPE || types[i].dtype >= TUTTI_DTYPE_END ||
            types[i].handle || types[i].rank < 0 || types[i].rank > TUTTI_MAX_RANK)
            return RULE_FAIL(node, TUTTI_INVALID, "component %d is %s, which is no type of a value",
                             i, tutti_type_text(&types[i], text));
    node->outputs[0] = tutti__queue_type();
    return TUTTI_OK;
}

/* Whoever runs a graph binds handles to the state and never comes here. */
static tutti_status reference(const tutti_call *call)
{
    return RULE_FAIL(call, TUTTI_UNINITIALIZED, "no queue is bound to its handle");
}

static const tutti_attr_spec attrs[] = {
    {"types", TUTTI_ATTR_TYPES, NULL},
    {"capacity", TUTTI_ATTR_INT, "0"},
    {"shared_name", TUTTI_ATTR_STRING, ""}, /* in the state; empty: the node's name */
    {0},
};

extern const tutti_op tutti_op_queue;

tutti_sym(tutti_fifo_queue)(tutti_graph *graph, const char *name, int64_t capacity, int count,
                            const tutti_type *types)
{
    tutti_attr given[] = {TUTTI_TYPES_ATTR("types", count, types), TUTTI_INT("capacity", capacity)};
    tutti_sym queue =
        tutti__build(graph, &tutti_op_queue, name, 0, NULL, TUTTI_COUNT(given), given);
    if (tutti_sym_ok(queue))
        tutti__attr_set_string(queue.node, "shared_name", queue.node->name);
    return queue;
}

const tutti_op tutti_op_queue = {
    .struct_size = sizeof(tutti_op),
    .name = "queue",
    .version = 1,
    .doc =
        "queue(types, capacity): q = the first-in-first-out queue of that shared_name, as a handle",
    .category = "state",
    .outputs = 1,
    .flags = TUTTI_OP_HANDLE | TUTTI_OP_STATEFUL | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = infer,
    .reference = reference,
};
