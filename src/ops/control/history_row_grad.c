/* history_row_grad.c: a row's value back in its history, zeros elsewhere: the adjoint of
 * history_row. */
#include "ops/control/control.h"
#include "ops/control/history.h"

static tutti_status history_row_grad_infer(tutti_infer *node)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    tutti_type value;
    TUTTI_TRY(tutti__history_infer(node, 1, &value));
    if (!tutti__types_agree(&node->inputs[0], &value))
        return RULE_FAIL(node, TUTTI_INVALID, "x is %s, a value of this history is %s",
                         tutti_type_text(&node->inputs[0], a), tutti_type_text(&value, b));
    node->outputs[0] = node->inputs[1];
    return TUTTI_OK;
}

static tutti_status history_row_grad_gradient(tutti_gradient_call *node)
{
    extern const tutti_op tutti_op_history_row;
    if (node->wanted[0])
        node->input_grads[0] =
            TUTTI_NARY(&tutti_op_history_row,
                       ((tutti_sym[]){node->output_grads[0], node->inputs[2], node->inputs[3]}),
                       RULE_ATTR(node, "dims"));
    return TUTTI_OK;
}

static tutti_status history_row_grad_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    tutti_move move;
    int64_t start;
    TUTTI_TRY(tutti__history_find(call, 1, &move, &start));
    for (int i = 0; i < move.rank; i++) {
        int64_t stride = move.from[i];
        if (x->dims[i] != move.dims[i])
            return RULE_FAIL(call, TUTTI_INVALID,
                             "x has %lld elements along axis %d, the value of this round %lld",
                             (long long)x->dims[i], i, (long long)move.dims[i]);
        move.from[i] = move.to[i];
        move.to[i] = stride;
    }
    tutti__fill_view(y, 0);
    tutti__move(call, &move, x->data, tutti__element(y, start));
    return TUTTI_OK;
}

static const tutti_attr_spec attrs[] = {
    {"dims", TUTTI_ATTR_INTS, "[]"}, /* as in history_row */
    {0},
};

static const char *const samples[] = {
    "f32[2,2] f32[3,4,2] i64[3,2]{=4,1,2,2,0,2} i64[]{=1}",
    "f64[2] f64[2,3] i64[2,1]{=3,2} i64[]{=1} | dims=[-1]",
    "f64[3,2] f64[2,3,2] i64[1,2]{=3,2} i64[]{=0} | dims=[3,-1]",
    "f32[] f32[4] i64[1,0] i64[]{=2}",
    NULL,
};

const tutti_op tutti_op_history_row_grad = {
    .struct_size = sizeof(tutti_op),
    .name = "history_row_grad",
    .version = 1,
    .doc =
        "history_row_grad(x, like, shapes, round; dims): y = 0 in the shape of like, but history_row(y, shapes, round) = x",
    .category = "control",
    .min_inputs = 4,
    .max_inputs = 4,
    .outputs = 1,
    .flags = TUTTI_OP_FALLIBLE | TUTTI_OP_LINEAR_FIRST,
    .attrs = attrs,
    .infer = history_row_grad_infer,
    .gradient = history_row_grad_gradient,
    .cost = tutti__cost_move,
    .reference = history_row_grad_reference,
    .samples = samples,
};
