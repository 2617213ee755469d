/* all_gather_uneven.c: the values of all devices, which may differ in size along one dimension,
 * joined. */
#include "ops/comm/comm.h"

static tutti_status all_gather_uneven_infer(tutti_infer *node)
{
    int dim;
    int64_t total = 0;
    const int64_t *counts;
    int count = tutti_attr_ints(node->attrs, node->attr_count, "counts", &counts);
    TUTTI_TRY(tutti__need_axis(node));
    TUTTI_TRY(tutti__need_dim_attr(node, "dim", &dim));
    if (count != RULE_INT(node, "size"))
        return RULE_FAIL(node, TUTTI_INVALID, "has %d counts for %lld devices", count,
                         (long long)RULE_INT(node, "size"));
    bool own = node->inputs[0].dims[dim] < 0;
    for (int i = 0; i < count; i++) {
        own |= counts[i] == node->inputs[0].dims[dim];
        if (counts[i] < 0 || !tutti__add_size(total, counts[i], &total))
            return RULE_FAIL(node, TUTTI_INVALID, "count %d is %lld", i, (long long)counts[i]);
    }
    if (!own)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "the input has %lld along dimension %d, which is none of the counts",
                         (long long)node->inputs[0].dims[dim], dim);
    TUTTI_TRY(tutti_infer_same(node));
    node->outputs[0].dims[dim] = total;
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    TUTTI_COMM_ATTRS,
    {"dim", TUTTI_ATTR_INT, "0"},
    {"counts", TUTTI_ATTR_INTS, NULL},
    {0},
};

static const char *const samples[] = {
    "f32[2,3] | axis=data size=1 counts=[2]",
    "i8[4] | axis=data size=1 counts=[4]",
    NULL,
};

const tutti_op tutti_op_all_gather_uneven = {
    .struct_size = sizeof(tutti_op),
    .name = "all_gather_uneven",
    .version = 1,
    .doc =
        "all_gather_uneven(x): y = the x of the devices of the axis, of sizes counts along dim, joined",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_COLLECTIVE | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = all_gather_uneven_infer,
    .cost = tutti__cost_comm,
    .reference = tutti__reference_alone,
    .samples = samples,
};
