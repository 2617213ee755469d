/* push.c: a gradient, to the parameter servers that hold its variable. */
#include "ops/comm/comm.h"

static tutti_status push_infer(tutti_infer *node)
{
    if (RULE_STRING(node, "variable")[0] == '\0')
        return RULE_FAIL(node, TUTTI_INVALID, "needs the name of a variable");
    int64_t wanted = 1 + (RULE_INT(node, "rows") != 0) + (RULE_INT(node, "rate") != 0) +
                     (RULE_INT(node, "apply") != 0);
    if (node->input_count != wanted)
        return RULE_FAIL(node, TUTTI_INVALID, "has %d inputs, needs %d", node->input_count,
                         (int)wanted);
    node->outputs[0] = tutti_type_make(TUTTI_BOOL, 0, NULL);
    return TUTTI_OK;
}

/* The runner reaches the servers and never comes here. */
static tutti_status push_reference(const tutti_kernel_call *call)
{
    return RULE_FAIL(call, TUTTI_UNSUPPORTED, "runs only under a strategy with parameter servers");
}

static const tutti_attr_spec attrs[] = {
    {"variable", TUTTI_ATTR_STRING, NULL},
    {"number", TUTTI_ATTR_INT, "0"}, /* among those that the run pushes */
    {"rows", TUTTI_ATTR_INT, "0"},   /* 1: indices come before the gradient, which is rows */
    {"rate", TUTTI_ATTR_INT, "0"},   /* 1: then comes the learning rate, an f32 scalar, */
    {"apply", TUTTI_ATTR_INT, "0"},  /* 1: and a bool scalar; where it is false nothing moves */
    {0},
};

const tutti_op tutti_op_push = {
    .struct_size = sizeof(tutti_op),
    .name = "push",
    .version = 1,
    .doc = "push([indices,] g[, rate][, apply]): the parameter servers get a gradient of the "
           "variable when the run commits; y = whether it moves something",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = 4,
    .outputs = 1,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_HOST,
    .attrs = attrs,
    .infer = push_infer,
    .cost = tutti__cost_comm,
    .reference = push_reference,
};
