/* all_to_all.c: pieces from every device to every device. */
#include "ops/comm/comm.h"

static tutti_status all_to_all_infer(tutti_infer *node)
{
    int from, to;
    int64_t piece, whole;
    TUTTI_TRY(tutti__need_axis(node));
    TUTTI_TRY(tutti__need_dim_attr(node, "split_dim", &from));
    TUTTI_TRY(tutti__need_dim_attr(node, "concat_dim", &to));
    TUTTI_TRY(tutti_infer_same(node));
    TUTTI_TRY(tutti__dim_over(node, from, node->inputs[0].dims[from], &piece));
    node->outputs[0].dims[from] = piece;
    TUTTI_TRY(tutti__dim_times(node, node->outputs[0].dims[to], &whole));
    node->outputs[0].dims[to] = whole;
    return TUTTI_OK;
}

/* The way back: cut where it was joined, join where it was cut. */
static tutti_status all_to_all_gradient(tutti_gradient_call *node)
{
    if (node->wanted[0])
        node->input_grads[0] = tutti_all_to_all(
            node->output_grads[0], RULE_STRING(node, "axis"), RULE_INT(node, "size"),
            (int)RULE_INT(node, "concat_dim"), (int)RULE_INT(node, "split_dim"));
    return TUTTI_OK;
}

static int all_to_all_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int split_dim = (int)RULE_INT(node, "split_dim");
    split_dim += split_dim < 0 ? node->inputs[0].rank : 0;
    int concat_dim = (int)RULE_INT(node, "concat_dim");
    concat_dim += concat_dim < 0 ? node->inputs[0].rank : 0;
    return tutti__split_except(node, split_dim, concat_dim, capacity, ret);
}

static const tutti_attr_spec attrs[] = {
    TUTTI_COMM_ATTRS,
    {"split_dim", TUTTI_ATTR_INT, "0"},
    {"concat_dim", TUTTI_ATTR_INT, "0"},
    {0},
};

static const char *const samples[] = {
    "f32[4,3] | axis=data size=1 concat_dim=1",
    "f64[2,3,2] | axis=data size=1 split_dim=2 concat_dim=0",
    "i32[4] | axis=data size=1",
    NULL,
};

extern const tutti_op tutti_op_all_to_all;

tutti_sym(tutti_all_to_all)(tutti_sym x, const char *axis, int64_t size, int split_dim,
                            int concat_dim)
{
    tutti_attr given[] = {TUTTI_STR("axis", axis ? axis : ""), TUTTI_INT("size", size),
                          TUTTI_INT("split_dim", split_dim), TUTTI_INT("concat_dim", concat_dim)};
    return tutti__nary(&tutti_op_all_to_all, 1, &x, TUTTI_COUNT(given), given);
}

const tutti_op tutti_op_all_to_all = {
    .struct_size = sizeof(tutti_op),
    .name = "all_to_all",
    .version = 1,
    .doc =
        "all_to_all(x): y = piece `rank` along split_dim of the x of every device, joined along concat_dim",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_COLLECTIVE,
    .attrs = attrs,
    .infer = all_to_all_infer,
    .gradient = all_to_all_gradient,
    .cost = tutti__cost_comm,
    .split = all_to_all_split,
    .reference = tutti__reference_alone,
    .samples = samples,
};
