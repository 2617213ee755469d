/* broadcast.c: the root's value, on all devices. */
#include "ops/comm/comm.h"

static tutti_status broadcast_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_axis(node));
    TUTTI_TRY(tutti__need_root(node));
    return tutti_infer_same(node);
}

/* The root's x goes into every y: its gradient is their sum; the other x have none. */
static tutti_status broadcast_gradient(tutti_gradient_call *node)
{
    if (node->wanted[0])
        node->input_grads[0] =
            tutti_reduce(node->output_grads[0], RULE_STRING(node, "axis"), RULE_INT(node, "size"),
                         RULE_INT(node, "root"), TUTTI_SUM);
    return TUTTI_OK;
}

static int broadcast_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_except(node, -1, -1, capacity, ret);
}

static const tutti_attr_spec attrs[] = {
    TUTTI_COMM_ATTRS,
    {"root", TUTTI_ATTR_INT, "0"},
    {0},
};

static const char *const samples[] = {
    "f32[2,3] | axis=data size=1",
    "bool[5] | axis=data size=1",
    "f64[] | axis=data size=1",
    NULL,
};

extern const tutti_op tutti_op_broadcast;

tutti_sym(tutti_broadcast)(tutti_sym x, const char *axis, int64_t size, int64_t root)
{
    tutti_attr given[] = {TUTTI_STR("axis", axis ? axis : ""), TUTTI_INT("size", size),
                          TUTTI_INT("root", root)};
    return tutti__nary(&tutti_op_broadcast, 1, &x, TUTTI_COUNT(given), given);
}

const tutti_op tutti_op_broadcast = {
    .struct_size = sizeof(tutti_op),
    .name = "broadcast",
    .version = 1,
    .doc = "broadcast(x): y = the root's x, on every device of the axis",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_COLLECTIVE,
    .attrs = attrs,
    .infer = broadcast_infer,
    .gradient = broadcast_gradient,
    .cost = tutti__cost_comm,
    .split = broadcast_split,
    .reference = tutti__reference_alone,
    .samples = samples,
};
