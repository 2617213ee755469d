/* all_reduce_shards.c: sums over the shards of a batch, finished along one tree: see segmented.h.
 * Every input holds "blocks" nodes of the tree, with an axis for them where there are several. */
#include "ops/comm/comm.h"

static tutti_status all_reduce_shards_infer(tutti_infer *node)
{
    int64_t blocks = RULE_INT(node, "blocks");
    TUTTI_TRY(tutti__need_axis(node));
    if (RULE_INT(node, "outputs") != node->input_count || blocks < 1 ||
        RULE_INT(node, "shards") < RULE_INT(node, "size"))
        return RULE_FAIL(node, TUTTI_INVALID, "%lld blocks, %lld shards, %lld devices do not fit",
                         (long long)blocks, (long long)RULE_INT(node, "shards"),
                         (long long)RULE_INT(node, "size"));
    for (int i = 0; i < node->input_count; i++) {
        const tutti_type *x = &node->inputs[i];
        node->outputs[i] = *x;
        if (blocks == 1)
            continue;
        if (x->rank < 1 || x->dims[0] != blocks)
            return RULE_FAIL(node, TUTTI_INVALID, "input %d does not hold %lld blocks", i,
                             (long long)blocks);
        node->outputs[i] = tutti_type_make(x->dtype, x->rank - 1, x->dims + 1);
    }
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    TUTTI_COMM_ATTRS,
    {"shards", TUTTI_ATTR_INT, NULL},
    {"blocks", TUTTI_ATTR_INT, NULL},
    {"outputs", TUTTI_ATTR_INT, NULL},
    {0},
};

static const char *const samples[] = {
    "f32[2,3] f32[5] | axis=data size=1 shards=8 blocks=1 outputs=2",
    NULL,
};

const tutti_op tutti_op_all_reduce_shards = {
    .struct_size = sizeof(tutti_op),
    .name = "all_reduce_shards",
    .version = 1,
    .doc = "all_reduce_shards(x0, …): yi = the sum over the shards of the batch, along one tree",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = -1,
    .outputs = -1,
    .flags = TUTTI_OP_COLLECTIVE | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = all_reduce_shards_infer,
    .cost = tutti__cost_comm,
    .reference = tutti__reference_alone_each,
    .samples = samples,
};
