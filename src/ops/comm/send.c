/* send.c: a value to another device. */
#include "ops/comm/comm.h"

static tutti_status send_infer(tutti_infer *node)
{
    if (RULE_STRING(node, "channel")[0] == '\0')
        return RULE_FAIL(node, TUTTI_INVALID, "needs the name of a channel");
    if (node->inputs[0].handle)
        return RULE_FAIL(node, TUTTI_INVALID, "variables do not travel, only their values");
    return TUTTI_OK;
}

/* The runner carries values between devices and never comes here. */
static tutti_status send_reference(const tutti_kernel_call *call)
{
    return RULE_FAIL(call, TUTTI_UNSUPPORTED, "runs only in a program bound to several devices");
}

static const tutti_attr_spec attrs[] = {
    {"channel", TUTTI_ATTR_STRING, NULL},
    {"to", TUTTI_ATTR_STRING, ""},
    {0},
};

extern const tutti_op tutti_op_send;

tutti_sym(tutti_send)(tutti_sym x, const char *channel, const char *to)
{
    tutti_attr given[] = {TUTTI_STR("channel", channel ? channel : ""),
                          TUTTI_STR("to", to ? to : "")};
    return tutti__nary(&tutti_op_send, 1, &x, TUTTI_COUNT(given), given);
}

const tutti_op tutti_op_send = {
    .struct_size = sizeof(tutti_op),
    .name = "send",
    .version = 1,
    .doc = "send(x): x goes to the recv of the same channel on another device",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 0,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_HOST,
    .attrs = attrs,
    .infer = send_infer,
    .cost = tutti__cost_comm,
    .reference = send_reference,
};
