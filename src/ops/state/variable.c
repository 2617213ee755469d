/* variable.c: state that lives longer than a step, seen as a handle. */
#include "ops/state/state.h"

static tutti_status variable_infer(tutti_infer *node)
{
    tutti_type type;
    char text[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__attrs_type(node, &type));
    if (!tutti_type_is_static(&type))
        return RULE_FAIL(node, TUTTI_INVALID,
                         "is %s, but a variable's shape must be known when it is made",
                         tutti_type_text(&type, text));
    type.handle = true;
    if (tutti__is_queue_type(&type))
        return RULE_FAIL(node, TUTTI_INVALID, "no variable may be %s: that type means a queue",
                         tutti_type_text(&type, text));
    node->outputs[0] = type;
    return TUTTI_OK;
}

/* Along every dimension: what takes the handle says whether that is of use. */
static int variable_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const int64_t *dims;
    int rank = tutti_attr_ints(node->attrs, node->attr_count, "dims", &dims);
    for (int d = 0; d < rank && d < capacity; d++)
        ret[d] = (tutti_split){.outputs = {(int8_t)d}, .attr = "dims", .attr_index = d};
    return rank;
}

/* Whoever runs a graph binds handles to the state and never comes here. */
static tutti_status variable_reference(const tutti_kernel_call *call)
{
    return RULE_FAIL(call, TUTTI_UNINITIALIZED, "no state is bound to the variable");
}

static const tutti_attr_spec attrs[] = {
    {"dtype", TUTTI_ATTR_INT, NULL},
    {"dims", TUTTI_ATTR_INTS, "[]"},
    {"shared_name", TUTTI_ATTR_STRING, ""}, /* in the state; empty: the node's name */
    {"trainable", TUTTI_ATTR_INT, "1"},
    {"slot_of", TUTTI_ATTR_STRING, ""},   /* the variable whose slot it is */
    {"partition", TUTTI_ATTR_STRING, ""}, /* pieces along each axis, "4,1"; empty: whole */
    {"rows", TUTTI_ATTR_STRING, ""},      /* of a table: what a row begins with, "normal:0.1" */
    {"partial", TUTTI_ATTR_INT, "0"}, /* its value is the sum (1) or the mean (2) over replicas */
    {"on_read", TUTTI_ATTR_INT, "0"}, /* replicas have values of their own */
    {"aggregation", TUTTI_ATTR_INT, "0"}, /* tutti_aggregation */
    /* Of a piece that a sharding gives to a rank: what it is a piece of, and where it begins;
     * whether no rank before holds the same; and how many devices of this process hold pieces. */
    {"global_dims", TUTTI_ATTR_INTS, "[]"},
    {"start", TUTTI_ATTR_INTS, "[]"},
    {"first", TUTTI_ATTR_INT, "1"},
    {"local", TUTTI_ATTR_INT, "1"},
    {0},
};

const tutti_op tutti_op_variable = {
    .struct_size = sizeof(tutti_op),
    .name = "variable",
    .version = 1,
    .doc = "variable(dtype, dims): v = the state of that shared_name, as a handle",
    .category = "state",
    .outputs = 1,
    .flags = TUTTI_OP_HANDLE | TUTTI_OP_STATEFUL | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = variable_infer,
    .split = variable_split,
    .reference = variable_reference,
};
