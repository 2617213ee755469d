/* lstm_backward(x, h, c, kernel, recurrent, y, reserve, grads...[, lengths]): the gradients of
 * lstm's inputs. */
#include "ops/network/recurrent.h"

static const tutti_cell *const cell = &tutti__lstm_cell;

static tutti_status lstm_backward_infer(tutti_infer *node)
{
    return tutti__rnn_backward_infer(node, cell);
}

static tutti_status lstm_backward_gradient(tutti_gradient_call *node)
{
    return tutti__rnn_second_gradient(node, cell);
}

static void lstm_backward_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__rnn_backward_cost(node, cell, ret);
}

static int lstm_backward_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__rnn_backward_split(node, cell, capacity, ret);
}

static tutti_status lstm_backward_run(const tutti_kernel_call *call, const double *const *inputs,
                                      double *const *outputs, tutti_arena *scratch)
{
    return tutti__rnn_backward_run(call, cell, inputs, outputs, scratch);
}

static tutti_status lstm_backward_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, lstm_backward_run);
}

static const tutti_attr_spec attrs[] = {{"reverse", TUTTI_ATTR_INT, "false"},
                                        PRODUCTS_ATTR,
                                        {"grads", TUTTI_ATTR_INT, "15"},
                                        {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[3,4,2] f32[3,3] f32[3,3] f32[2,12] f32[3,12] f32[3,4,3] f32[3,4,15]{0.1:0.9} "
    "f32[3,4,3] f32[3,3] f32[3,3] f32[3,4,15]",
    "f32[3,4,2] f32[3,2] f32[3,2] f32[2,8] f32[2,8] f32[3,4,2] f32[3,4,10]{0.1:0.9} "
    "f32[3,2] i32[3]{=4,1,2} | grads=2",
    "f32[2,3,2] f32[2,1] f32[2,1] f32[2,4] f32[1,4] f32[2,3,1] f32[2,3,5]{0.1:0.9} "
    "f32[2,1] | reverse=true grads=4",
    "f32[2,3,2] f32[2,4] f32[2,4] f32[2,16] f32[4,16] f32[2,3,4] f32[2,3,20]{0.1:0.9} "
    "f32[2,3,4] f32[2,4] f32[2,4] f32[2,3,20] i32[2]{=3,1}",
    NULL,
};

const tutti_op tutti_op_lstm_backward = {
    .struct_size = sizeof(tutti_op),
    .name = "lstm_backward",
    .version = 1,
    .doc =
        "lstm_backward(x, states, kernel, recurrent, y, reserve, output gradients by the bits of "
        "`grads`[, lengths]): the gradients of lstm's x, states, kernel, recurrent, bias",
    .category = "network",
    .min_inputs = 7,
    .max_inputs = 12,
    .outputs = 6,
    .attrs = attrs,
    .infer = lstm_backward_infer,
    .gradient = lstm_backward_gradient,
    .cost = lstm_backward_cost,
    .split = lstm_backward_split,
    .reference = lstm_backward_reference,
    .samples = samples,
};
