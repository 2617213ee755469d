/* all_reduce_wait.c: ends an all_reduce_many that was only started: what uses its outputs runs
 * after this. */
#include "ops/comm/comm.h"

static tutti_status all_reduce_wait_infer(tutti_infer *node)
{
    return tutti__need_axis(node);
}

/* Along an axis of size 1 there is nothing to wait for. */
static tutti_status all_reduce_wait_reference(const tutti_kernel_call *call)
{
    if (RULE_INT(call, "size") != 1)
        return RULE_FAIL(call, TUTTI_UNSUPPORTED, "waits for devices that are not there");
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    TUTTI_COMM_ATTRS,
    {0},
};

const tutti_op tutti_op_all_reduce_wait = {
    .struct_size = sizeof(tutti_op),
    .name = "all_reduce_wait",
    .version = 1,
    .doc = "all_reduce_wait(x): waits until the all_reduce_many of its channel is done",
    .category = "communication",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 0,
    .flags = TUTTI_OP_STATEFUL | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = all_reduce_wait_infer,
    .reference = all_reduce_wait_reference,
};
