/* reduce_scatter.c: a reduction over devices, one piece on each. */
#include "ops/comm/comm.h"

static tutti_status reduce_scatter_infer(tutti_infer *node)
{
    int dim;
    TUTTI_TRY(tutti__need_axis(node));
    TUTTI_TRY(tutti__need_reduction(node));
    TUTTI_TRY(tutti__need_dim_attr(node, "dim", &dim));
    TUTTI_TRY(tutti_infer_same(node));
    return tutti__dim_over(node, dim, node->inputs[0].dims[dim], &node->outputs[0].dims[dim]);
}

static tutti_status reduce_scatter_gradient(tutti_gradient_call *node)
{
    bool mean;
    int64_t size = RULE_INT(node, "size");
    TUTTI_TRY(tutti__gradient_reduction(node, &mean));
    if (!node->wanted[0])
        return TUTTI_OK;
    tutti_sym grad = tutti_all_gather(node->output_grads[0], RULE_STRING(node, "axis"), size,
                                      (int)RULE_INT(node, "dim"));
    node->input_grads[0] = mean ? tutti_mul(grad, 1.0 / (double)size) : grad;
    return TUTTI_OK;
}

static int reduce_scatter_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int dim = (int)RULE_INT(node, "dim");
    dim += dim < 0 ? node->inputs[0].rank : 0;
    return tutti__split_except(node, dim, -1, capacity, ret);
}

static const tutti_attr_spec attrs[] = {
    TUTTI_COMM_ATTRS,
    {"op", TUTTI_ATTR_STRING, "sum"},
    {"dim", TUTTI_ATTR_INT, "0"},
    {0},
};

static const char *const samples[] = {
    "f32[2,3] | axis=data size=1",
    "f64[2,3] | axis=data size=1 dim=1 op=mean",
    "i32[4] | axis=data size=1 op=min",
    NULL,
};

extern const tutti_op tutti_op_reduce_scatter;

tutti_sym(tutti_reduce_scatter)(tutti_sym x, const char *axis, int64_t size, int dim,
                                tutti_reduction reduction)
{
    tutti_attr given[] = {TUTTI_STR("axis", axis ? axis : ""), TUTTI_INT("size", size),
                          TUTTI_INT("dim", dim), TUTTI_STR("op", tutti__reduction_name(reduction))};
    return tutti__nary(&tutti_op_reduce_scatter, 1, &x, TUTTI_COUNT(given), given);
}

const tutti_op tutti_op_reduce_scatter = {
    .struct_size = sizeof(tutti_op),
    .name = "reduce_scatter",
    .version = 1,
    .doc = "reduce_scatter(x): y = piece `rank` along dim of op over the devices of the axis of x",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_COLLECTIVE,
    .attrs = attrs,
    .infer = reduce_scatter_infer,
    .gradient = reduce_scatter_gradient,
    .cost = tutti__cost_comm,
    .split = reduce_scatter_split,
    .reference = tutti__reference_alone,
    .samples = samples,
};
