/* queue.c: a queue of tuples, seen as a handle: first in, first out, or shuffled, by priority, or
 * with batches that are filled up. */
#include "ops/state/queues.h"

/* What the kinds ask for; see tensor/queue.h. */
static tutti_status check_kind(const tutti_infer *node, const tutti_type *types)
{
    char text[TUTTI_TYPE_TEXT];
    int64_t kind = RULE_INT(node, "kind"), capacity = RULE_INT(node, "capacity");
    int64_t stay = RULE_INT(node, "min_after_dequeue");
    if (kind < TUTTI_QUEUE_FIFO || kind > TUTTI_QUEUE_PADDING)
        return RULE_FAIL(node, TUTTI_INVALID, "kind is %lld, knows 0 to %d", (long long)kind,
                         TUTTI_QUEUE_PADDING);
    if (kind == TUTTI_QUEUE_SHUFFLE && (stay < 0 || (capacity > 0 && stay >= capacity)))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "min_after_dequeue is %lld, needs 0 or more and less than the capacity, "
                         "%lld",
                         (long long)stay, (long long)capacity);
    if (kind == TUTTI_QUEUE_PRIORITY && (types[0].dtype != TUTTI_I64 || types[0].rank != 0))
        return RULE_FAIL(node, TUTTI_INVALID, "component 0 is %s, needs i64[], the priority",
                         tutti_type_text(&types[0], text));
    return TUTTI_OK;
}

static bool is_value_type(const tutti_type *type)
{
    bool sound = type->dtype > TUTTI_NO_DTYPE && type->dtype < TUTTI_DTYPE_END && !type->handle &&
                 type->rank >= 0 && type->rank <= TUTTI_MAX_RANK;
    for (int i = 0; sound && i < type->rank; i++)
        sound = type->dims[i] >= TUTTI_ANY;
    return sound;
}

static tutti_status queue_infer(tutti_infer *node)
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
        if (!is_value_type(&types[i]))
            return RULE_FAIL(node, TUTTI_INVALID, "component %d is %s, which is no type of a value",
                             i, tutti_type_text(&types[i], text));
    TUTTI_TRY(check_kind(node, types));
    node->outputs[0] = tutti__queue_type();
    return TUTTI_OK;
}

/* Whoever runs a graph binds handles to the state and never comes here. */
static tutti_status queue_reference(const tutti_kernel_call *call)
{
    return RULE_FAIL(call, TUTTI_UNINITIALIZED, "no queue is bound to its handle");
}

static const tutti_attr_spec attrs[] = {
    {"types", TUTTI_ATTR_TYPES, NULL},
    {"capacity", TUTTI_ATTR_INT, "0"},
    {"kind", TUTTI_ATTR_INT, "0"}, /* tutti_queue_kind */
    {"min_after_dequeue", TUTTI_ATTR_INT, "0"},
    {"seed", TUTTI_ATTR_INT, "0"},
    {"shared_name", TUTTI_ATTR_STRING, ""}, /* in the state; empty: the node's name */
    {0},
};

extern const tutti_op tutti_op_queue;

static tutti_sym queue_build(tutti_graph *graph, const char *name, int64_t capacity,
                             tutti_queue_order order, int count, const tutti_type *types)
{
    tutti_attr given[] = {TUTTI_TYPES_ATTR("types", count, types), TUTTI_INT("capacity", capacity),
                          TUTTI_INT("kind", order.kind),
                          TUTTI_INT("min_after_dequeue", order.min_after_dequeue),
                          TUTTI_INT("seed", (int64_t)order.seed)};
    tutti_sym queue =
        tutti__build(graph, &tutti_op_queue, name, 0, NULL, TUTTI_COUNT(given), given);
    if (tutti_sym_ok(queue))
        tutti__attr_set_string(queue.node, "shared_name", queue.node->name);
    return queue;
}

tutti_sym(tutti_fifo_queue)(tutti_graph *graph, const char *name, int64_t capacity, int count,
                            const tutti_type *types)
{
    return queue_build(graph, name, capacity, (tutti_queue_order){.kind = TUTTI_QUEUE_FIFO}, count,
                       types);
}

tutti_sym(tutti_shuffle_queue)(tutti_graph *graph, const char *name, int64_t capacity,
                               int64_t min_after_dequeue, int64_t seed, int count,
                               const tutti_type *types)
{
    tutti_queue_order order = {.kind = TUTTI_QUEUE_SHUFFLE,
                               .min_after_dequeue = min_after_dequeue,
                               .seed = (uint64_t)seed};
    return queue_build(graph, name, capacity, order, count, types);
}

tutti_sym(tutti_priority_queue)(tutti_graph *graph, const char *name, int64_t capacity, int count,
                                const tutti_type *types)
{
    tutti_type all[TUTTI_QUEUE_MAX_COMPONENTS];
    if (count < 0 || count >= TUTTI_QUEUE_MAX_COMPONENTS)
        return tutti__poison(graph, TUTTI_INVALID, "queue: takes at most %d components",
                             TUTTI_QUEUE_MAX_COMPONENTS - 1);
    all[0] = tutti_type_make(TUTTI_I64, 0, NULL);
    if (count > 0 && types)
        memcpy(all + 1, types, (size_t)count * sizeof *types);
    return queue_build(graph, name, capacity, (tutti_queue_order){.kind = TUTTI_QUEUE_PRIORITY},
                       count + 1, all);
}

tutti_sym(tutti_padding_queue)(tutti_graph *graph, const char *name, int64_t capacity, int count,
                               const tutti_type *types)
{
    return queue_build(graph, name, capacity, (tutti_queue_order){.kind = TUTTI_QUEUE_PADDING},
                       count, types);
}

const tutti_op tutti_op_queue = {
    .struct_size = sizeof(tutti_op),
    .name = "queue",
    .version = 1,
    .doc =
        "queue(types, capacity, kind): q = the queue of that shared_name, as a handle; kind 0: first in first out, 1: shuffled, 2: by priority, 3: padding",
    .category = "state",
    .outputs = 1,
    .flags = TUTTI_OP_HANDLE | TUTTI_OP_STATEFUL | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = queue_infer,
    .reference = queue_reference,
};
