/* all_reduce.c: a reduction over devices, on all of them. */
#include "ops/comm/comm.h"

static tutti_status all_reduce_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_axis(node));
    TUTTI_TRY(tutti__need_reduction(node));
    return tutti_infer_same(node);
}

/* Every device's x goes into every device's y: the gradients are reduced the same way. */
static tutti_status all_reduce_gradient(tutti_gradient_call *node)
{
    bool mean;
    TUTTI_TRY(tutti__gradient_reduction(node, &mean));
    if (node->wanted[0])
        node->input_grads[0] =
            tutti_all_reduce(node->output_grads[0], RULE_STRING(node, "axis"),
                             RULE_INT(node, "size"), mean ? TUTTI_MEAN : TUTTI_SUM);
    return TUTTI_OK;
}

static int all_reduce_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_except(node, -1, -1, capacity, ret);
}

static const tutti_attr_spec attrs[] = {
    TUTTI_COMM_ATTRS,
    {"op", TUTTI_ATTR_STRING, "sum"},
    {0},
};

static const char *const samples[] = {
    "f32[2,3] | axis=data size=1",
    "f64[5] | axis=data size=1 op=mean",
    "i32[4] | axis=model size=1 op=max",
    "bf16[] | axis=data size=1",
    NULL,
};

extern const tutti_op tutti_op_all_reduce;

tutti_sym(tutti_all_reduce)(tutti_sym x, const char *axis, int64_t size, tutti_reduction reduction)
{
    tutti_attr given[] = {TUTTI_STR("axis", axis ? axis : ""), TUTTI_INT("size", size),
                          TUTTI_STR("op", tutti__reduction_name(reduction))};
    return tutti__nary(&tutti_op_all_reduce, 1, &x, TUTTI_COUNT(given), given);
}

const tutti_op tutti_op_all_reduce = {
    .struct_size = sizeof(tutti_op),
    .name = "all_reduce",
    .version = 1,
    .doc = "all_reduce(x): y = op over the devices of the axis of x",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_COLLECTIVE,
    .attrs = attrs,
    .infer = all_reduce_infer,
    .gradient = all_reduce_gradient,
    .cost = tutti__cost_comm,
    .split = all_reduce_split,
    .reference = tutti__reference_alone,
    .samples = samples,
};
