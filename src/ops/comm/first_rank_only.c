/* first_rank_only.c: a value as a sum over the ranks of an axis: rank 0 has it, the others zeros.
 */
#include "ops/comm/comm.h"

static tutti_status first_rank_only_infer(tutti_infer *node)
{
    node->outputs[0] = node->inputs[0];
    return TUTTI_OK;
}

static tutti_status first_rank_only_reference(const tutti_kernel_call *call)
{
    const tutti_view *y = &call->outputs[0];
    size_t bytes = (size_t)tutti_view_count(y) * tutti_dtype_size(y->dtype);
    if (tutti_view_get_int(&call->inputs[1], 0) == 0)
        return tutti__reference_copy(call);
    if (bytes > 0)
        memset(y->data, 0, bytes);
    return TUTTI_OK;
}

static const char *const samples[] = {
    "f32[4,3] i32[]{=1}",
    NULL,
};

const tutti_op tutti_op_first_rank_only = {
    .struct_size = sizeof(tutti_op),
    .name = "first_rank_only",
    .version = 1,
    .doc = "first_rank_only(x, i): y = x where i is 0, else zeros",
    .category = "communication",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT,
    .infer = first_rank_only_infer,
    .cost = tutti__cost_comm,
    .reference = first_rank_only_reference,
    .samples = samples,
};
