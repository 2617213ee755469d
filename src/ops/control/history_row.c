/* history_row.c: the value of a loop variable at the start of one round; made by the gradient of
 * loops whose variables may change their shapes. */
#include "ops/control/history.h"

static tutti_status history_row_infer(tutti_infer *node)
{
    return tutti__history_infer(node, 0, &node->outputs[0]);
}

static tutti_status history_row_gradient(tutti_gradient_call *node)
{
    extern const tutti_op tutti_op_history_row_grad;
    if (node->wanted[0])
        node->input_grads[0] = TUTTI_NARY(&tutti_op_history_row_grad,
                                          ((tutti_sym[]){node->output_grads[0], node->inputs[0],
                                                         node->inputs[1], node->inputs[2]}),
                                          RULE_ATTR(node, "dims"));
    return TUTTI_OK;
}

static tutti_status history_row_reference(const tutti_kernel_call *call)
{
    tutti_move move;
    int64_t start;
    TUTTI_TRY(tutti__history_find(call, 0, &move, &start));
    TUTTI_TRY(tutti_kernel_call_allocate(call, 0, move.rank, move.dims));
    tutti__move(call, &move, tutti__element(&call->inputs[0], start), call->outputs[0].data);
    return TUTTI_OK;
}

extern const tutti_op tutti_op_history_row;
tutti_sym tutti__history_row(tutti_sym history, tutti_sym shapes, tutti_sym round,
                             const tutti_type *type)
{
    return TUTTI_NARY(&tutti_op_history_row, ((tutti_sym[]){history, shapes, round}),
                      tutti__dims_attr(type));
}

static const tutti_attr_spec attrs[] = {
    {"dims", TUTTI_ATTR_INTS, "[]"}, /* what is known of the value's shape; -1 where it is not */
    {0},
};

static const char *const samples[] = {
    "f32[3,4,2] i64[3,2]{=4,1,2,2,0,2} i64[]{=1}",
    "f64[2,3] i64[2,1]{=3,2} i64[]{=1} | dims=[-1]",
    "i32[2,3,2] i64[1,2]{=3,2} i64[]{=0} | dims=[3,-1]",
    "f16[2,2,3] i64[2,2]{=2,3,0,3} i64[]{=1} | dims=[-1,3]",
    "f32[4] i64[1,0] i64[]{=2}",
    NULL,
};

const tutti_op tutti_op_history_row = {
    .struct_size = sizeof(tutti_op),
    .name = "history_row",
    .version = 1,
    .doc =
        "history_row(history, shapes, round; dims): y = the first shapes[round] elements along each axis of history[round]",
    .category = "control",
    .min_inputs = 3,
    .max_inputs = 3,
    .outputs = 1,
    .flags = TUTTI_OP_DYNAMIC | TUTTI_OP_FALLIBLE | TUTTI_OP_LINEAR_FIRST,
    .attrs = attrs,
    .infer = history_row_infer,
    .gradient = history_row_gradient,
    .cost = tutti__cost_move,
    .reference = history_row_reference,
    .samples = samples,
};
