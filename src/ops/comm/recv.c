/* recv.c: a value from another device. */
#include "ops/comm/comm.h"

static tutti_status recv_infer(tutti_infer *node)
{
    if (RULE_STRING(node, "channel")[0] == '\0')
        return RULE_FAIL(node, TUTTI_INVALID, "needs the name of a channel");
    return tutti__attrs_type(node, &node->outputs[0]);
}

/* The runner carries values between devices and never comes here. */
static tutti_status recv_reference(const tutti_kernel_call *call)
{
    return RULE_FAIL(call, TUTTI_UNSUPPORTED, "runs only in a program bound to several devices");
}

static const tutti_attr_spec attrs[] = {
    {"channel", TUTTI_ATTR_STRING, NULL},
    {"from", TUTTI_ATTR_STRING, ""},
    {"dtype", TUTTI_ATTR_INT, NULL},
    {"dims", TUTTI_ATTR_INTS, "[]"},
    {"late", TUTTI_ATTR_INT, "0"}, /* what it waits for is known only after the step's commit */
    {0},
};

extern const tutti_op tutti_op_recv;

tutti_sym(tutti_recv)(tutti_graph *graph, const char *channel, const char *from, tutti_type type)
{
    tutti_attr given[] = {TUTTI_STR("channel", channel ? channel : ""),
                          TUTTI_STR("from", from ? from : ""), TUTTI_INT("dtype", type.dtype),
                          tutti__dims_attr(&type)};
    return tutti__build(graph, &tutti_op_recv, NULL, 0, NULL, TUTTI_COUNT(given), given);
}

const tutti_op tutti_op_recv = {
    .struct_size = sizeof(tutti_op),
    .name = "recv",
    .version = 1,
    .doc = "recv(): y = the value that the send of the same channel sent",
    .category = "communication",
    .outputs = 1,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_BLOCKING | TUTTI_OP_HOST,
    .attrs = attrs,
    .infer = recv_infer,
    .cost = tutti__cost_comm,
    .reference = recv_reference,
};
