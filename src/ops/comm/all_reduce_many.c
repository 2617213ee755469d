/* all_reduce_many.c: sums over devices of several values at once, on all of them. */
#include "ops/comm/comm.h"

static tutti_status all_reduce_many_infer(tutti_infer *node)
{
    char first[TUTTI_TYPE_TEXT], other[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__need_axis(node));
    TUTTI_TRY(tutti__need_reduction(node));
    if (RULE_INT(node, "outputs") != node->input_count)
        return RULE_FAIL(node, TUTTI_INVALID, "has %d inputs and %lld outputs", node->input_count,
                         (long long)RULE_INT(node, "outputs"));
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i].dtype != node->inputs[0].dtype)
            return RULE_FAIL(node, TUTTI_INVALID, "inputs 0 and %d are %s and %s", i,
                             tutti_type_text(&node->inputs[0], first),
                             tutti_type_text(&node->inputs[i], other));
        node->outputs[i] = node->inputs[i];
    }
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    TUTTI_COMM_ATTRS,
    {"op", TUTTI_ATTR_STRING, "sum"},
    {"outputs", TUTTI_ATTR_INT, NULL},
    {"wire", TUTTI_ATTR_STRING, ""},  /* "bf16": the form of f32 between devices */
    {"names", TUTTI_ATTR_STRING, ""}, /* of the values, each with a newline behind it, for a form
                                         that remembers what it left out of them */
    {"starts", TUTTI_ATTR_INT, "0"},  /* only starts; an all_reduce_wait of the channel follows */
    {0},
};

static const char *const samples[] = {
    "f32[2,3] f32[5] | axis=data size=1 outputs=2",
    "f64[5] | axis=data size=1 op=max outputs=1",
    NULL,
};

const tutti_op tutti_op_all_reduce_many = {
    .struct_size = sizeof(tutti_op),
    .name = "all_reduce_many",
    .version = 1,
    .doc = "all_reduce_many(x0, x1, …): yi = op over the devices of the axis of xi",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = -1,
    .outputs = -1,
    .flags = TUTTI_OP_COLLECTIVE | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = all_reduce_many_infer,
    .cost = tutti__cost_comm,
    .reference = tutti__reference_alone_each,
    .samples = samples,
};
