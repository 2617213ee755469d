/* reduce.c: a reduction over devices, on the root. */
#include "ops/comm/comm.h"

static tutti_status reduce_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_axis(node));
    TUTTI_TRY(tutti__need_reduction(node));
    TUTTI_TRY(tutti__need_root(node));
    return tutti_infer_same(node);
}

/* Only the root's y counts: its gradient goes to every device. */
static tutti_status reduce_gradient(tutti_gradient_call *node)
{
    bool mean;
    int64_t size = RULE_INT(node, "size");
    TUTTI_TRY(tutti__gradient_reduction(node, &mean));
    if (!node->wanted[0])
        return TUTTI_OK;
    tutti_sym grad = tutti_broadcast(node->output_grads[0], RULE_STRING(node, "axis"), size,
                                     RULE_INT(node, "root"));
    node->input_grads[0] = mean ? tutti_mul(grad, 1.0 / (double)size) : grad;
    return TUTTI_OK;
}

static int reduce_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_except(node, -1, -1, capacity, ret);
}

static const tutti_attr_spec attrs[] = {
    TUTTI_COMM_ATTRS,
    {"op", TUTTI_ATTR_STRING, "sum"},
    {"root", TUTTI_ATTR_INT, "0"},
    {0},
};

static const char *const samples[] = {
    "f32[2,3] | axis=data size=1",
    "f64[5] | axis=data size=1 op=mean",
    "i64[4] | axis=data size=1 op=prod",
    NULL,
};

extern const tutti_op tutti_op_reduce;

tutti_sym(tutti_reduce)(tutti_sym x, const char *axis, int64_t size, int64_t root,
                        tutti_reduction reduction)
{
    tutti_attr given[] = {TUTTI_STR("axis", axis ? axis : ""), TUTTI_INT("size", size),
                          TUTTI_INT("root", root),
                          TUTTI_STR("op", tutti__reduction_name(reduction))};
    return tutti__nary(&tutti_op_reduce, 1, &x, TUTTI_COUNT(given), given);
}

const tutti_op tutti_op_reduce = {
    .struct_size = sizeof(tutti_op),
    .name = "reduce",
    .version = 1,
    .doc = "reduce(x): y = op over the devices of the axis of x on the root, 0 elsewhere",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_COLLECTIVE,
    .attrs = attrs,
    .infer = reduce_infer,
    .gradient = reduce_gradient,
    .cost = tutti__cost_comm,
    .split = reduce_split,
    .reference = tutti__reference_alone,
    .samples = samples,
};
