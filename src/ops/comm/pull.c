/* pull.c: a variable's value, from the parameter servers that hold it. */
#include "ops/comm/comm.h"

static tutti_status pull_infer(tutti_infer *node)
{
    if (RULE_STRING(node, "variable")[0] == '\0')
        return RULE_FAIL(node, TUTTI_INVALID, "needs the name of a variable");
    return tutti__attrs_type(node, &node->outputs[0]);
}

/* The runner reaches the servers and never comes here. */
static tutti_status pull_reference(const tutti_kernel_call *call)
{
    return RULE_FAIL(call, TUTTI_UNSUPPORTED, "runs only under a strategy with parameter servers");
}

static const tutti_attr_spec attrs[] = {
    {"variable", TUTTI_ATTR_STRING, NULL}, {"number", TUTTI_ATTR_INT, "0"}, /* among those that the
                                                                               run pulls */
    {"dtype", TUTTI_ATTR_INT, NULL},       {"dims", TUTTI_ATTR_INTS, "[]"}, {0},
};

const tutti_op tutti_op_pull = {
    .struct_size = sizeof(tutti_op),
    .name = "pull",
    .version = 1,
    .doc = "pull(): y = the value that the parameter servers have of the variable",
    .category = "communication",
    .outputs = 1,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_BLOCKING | TUTTI_OP_HOST,
    .attrs = attrs,
    .infer = pull_infer,
    .cost = tutti__cost_comm,
    .reference = pull_reference,
};
