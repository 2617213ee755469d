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
    {"partial", TUTTI_ATTR_INT, "0"}, /* its value is the sum (1) or the mean (2) over replicas */
    {"on_read", TUTTI_ATTR_INT, "0"}, /* replicas have values of their own */
    {"aggregation", TUTTI_ATTR_INT, "0"}, /* tutti_aggregation */
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
    .reference = variable_reference,
};
