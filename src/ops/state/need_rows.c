/* need_rows.c: ends a step for which some process's queue had too few rows, see dequeue_own. */
#include "ops/state/state.h"

static tutti_status need_rows_infer(tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    if (node->inputs[0].dtype != TUTTI_F32 || node->inputs[0].rank != 0)
        return RULE_FAIL(node, TUTTI_INVALID, "what is missing is %s, needs f32[]",
                         tutti_type_text(&node->inputs[0], text));
    return tutti_infer_same(node);
}

static tutti_status need_rows_reference(const tutti_kernel_call *call)
{
    if (tutti_view_get(&call->inputs[0], 0) != 0)
        return RULE_FAIL(call, TUTTI_OUT_OF_RANGE,
                         "the queue of some process is closed and has fewer left than its rows of "
                         "a batch of %lld",
                         (long long)RULE_INT(call, "batch"));
    return tutti__reference_copy(call);
}

static const tutti_attr_spec attrs[] = {
    {"batch", TUTTI_ATTR_INT, "0"},
    {0},
};

static const char *const samples[] = {
    "f32[]{=0}",
    NULL,
};

const tutti_op tutti_op_need_rows = {
    .struct_size = sizeof(tutti_op),
    .name = "need_rows",
    .version = 1,
    .doc = "need_rows(missing): y = missing; fails with OUT_OF_RANGE where it is not 0",
    .category = "state",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE | TUTTI_OP_HOST | TUTTI_OP_NO_GRADIENT,
    .attrs = attrs,
    .infer = need_rows_infer,
    .cost = tutti__cost_move,
    .reference = need_rows_reference,
    .samples = samples,
};
