/* all_gather.c: the values of all devices, joined. */
#include "ops/comm/comm.h"

static tutti_status all_gather_infer(tutti_infer *node)
{
    int dim;
    TUTTI_TRY(tutti__need_axis(node));
    TUTTI_TRY(tutti__need_dim_attr(node, "dim", &dim));
    TUTTI_TRY(tutti_infer_same(node));
    return tutti__dim_times(node, node->inputs[0].dims[dim], &node->outputs[0].dims[dim]);
}

static tutti_status all_gather_gradient(tutti_gradient_call *node)
{
    if (node->wanted[0])
        node->input_grads[0] =
            tutti_reduce_scatter(node->output_grads[0], RULE_STRING(node, "axis"),
                                 RULE_INT(node, "size"), (int)RULE_INT(node, "dim"), TUTTI_SUM);
    return TUTTI_OK;
}

static int all_gather_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int dim = (int)RULE_INT(node, "dim");
    dim += dim < 0 ? node->inputs[0].rank : 0;
    return tutti__split_except(node, dim, -1, capacity, ret);
}

static const tutti_attr_spec attrs[] = {
    TUTTI_COMM_ATTRS,
    {"dim", TUTTI_ATTR_INT, "0"},
    {0},
};

static const char *const samples[] = {
    "f32[2,3] | axis=data size=1",
    "f64[2,3] | axis=data size=1 dim=-1",
    "i8[4] | axis=data size=1",
    NULL,
};

extern const tutti_op tutti_op_all_gather;

tutti_sym(tutti_all_gather)(tutti_sym x, const char *axis, int64_t size, int dim)
{
    tutti_attr given[] = {TUTTI_STR("axis", axis ? axis : ""), TUTTI_INT("size", size),
                          TUTTI_INT("dim", dim)};
    return tutti__nary(&tutti_op_all_gather, 1, &x, TUTTI_COUNT(given), given);
}

const tutti_op tutti_op_all_gather = {
    .struct_size = sizeof(tutti_op),
    .name = "all_gather",
    .version = 1,
    .doc = "all_gather(x): y = the x of the devices of the axis, joined along dim",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_COLLECTIVE,
    .attrs = attrs,
    .infer = all_gather_infer,
    .gradient = all_gather_gradient,
    .cost = tutti__cost_comm,
    .split = all_gather_split,
    .reference = tutti__reference_alone,
    .samples = samples,
};
