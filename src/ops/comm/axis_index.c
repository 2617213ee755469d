/* axis_index.c: which rank along a mesh axis this is; what a rank's block of a value follows from.
 */
#include "ops/comm/comm.h"

static tutti_status axis_index_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_axis(node));
    node->outputs[0] = tutti_type_make(TUTTI_I32, 0, NULL);
    return TUTTI_OK;
}

static tutti_status axis_index_reference(const tutti_kernel_call *call)
{
    if (RULE_INT(call, "size") != 1)
        return RULE_FAIL(call, TUTTI_UNSUPPORTED,
                         "axis '%s' has %lld ranks; a step is specialized to its rank first",
                         RULE_STRING(call, "axis"), (long long)RULE_INT(call, "size"));
    tutti_view_set_int(&call->outputs[0], 0, 0);
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    TUTTI_COMM_ATTRS,
    {0},
};

static const char *const samples[] = {
    "| axis=data size=1",
    NULL,
};

const tutti_op tutti_op_axis_index = {
    .struct_size = sizeof(tutti_op),
    .name = "axis_index",
    .version = 1,
    .doc = "axis_index(): the rank of this device along the axis, from 0",
    .category = "communication",
    .min_inputs = 0,
    .max_inputs = 0,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = axis_index_infer,
    .reference = axis_index_reference,
    .samples = samples,
};
