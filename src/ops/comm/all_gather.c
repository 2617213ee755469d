/* all_gather.c: the values of all devices, joined; where "counts" says so they differ in size along
 * the dimension. */
#include "ops/comm/comm.h"
#include "ops/shape/rule.h"

static tutti_status add_counts(const tutti_infer *node, int count, const int64_t *counts, int dim,
                               int64_t *ret_total)
{
    int64_t total = 0, own = node->inputs[0].dims[dim];
    bool known = own < 0;
    if (count != RULE_INT(node, "size"))
        return RULE_FAIL(node, TUTTI_INVALID, "has %d counts for %lld devices", count,
                         (long long)RULE_INT(node, "size"));
    for (int i = 0; i < count; i++) {
        known = known || counts[i] == own;
        if (counts[i] < 0 || !tutti__add_size(total, counts[i], &total))
            return RULE_FAIL(node, TUTTI_INVALID, "count %d is %lld", i, (long long)counts[i]);
    }
    if (!known)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "the input has %lld along dimension %d, which is none of the counts",
                         (long long)own, dim);
    *ret_total = total;
    return TUTTI_OK;
}

static tutti_status all_gather_infer(tutti_infer *node)
{
    int dim;
    const int64_t *counts;
    int count = RULE_INTS(node, "counts", &counts);
    TUTTI_TRY(tutti__need_axis(node));
    TUTTI_TRY(tutti__need_dim_attr(node, "dim", &dim));
    TUTTI_TRY(tutti_infer_same(node));
    if (count > 0)
        return add_counts(node, count, counts, dim, &node->outputs[0].dims[dim]);
    return tutti__dim_times(node, node->inputs[0].dims[dim], &node->outputs[0].dims[dim]);
}

static tutti_status all_gather_gradient(tutti_gradient_call *node)
{
    const int64_t *counts;
    int count = RULE_INTS(node, "counts", &counts);
    bool even = true;
    for (int i = 1; i < count; i++)
        even = even && counts[i] == counts[0];
    if (!even)
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "'%s' gathers blocks of different sizes, which has no gradient; gather "
                          "equal ones, or use tutti_stop_gradient",
                          node->name);
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
    {"counts", TUTTI_ATTR_INTS, "[]"},
    {0},
};

static const char *const samples[] = {
    "f32[2,3] | axis=data size=1",
    "f64[2,3] | axis=data size=1 dim=-1",
    "i8[4] | axis=data size=1",
    "f32[2,3] | axis=data size=1 counts=[2]",
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
    .doc = "all_gather(x): y = the x of the devices of the axis, joined along dim, of sizes counts",
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
