/* simple_rnn_backward(x, h, kernel, recurrent, y, grads...[, lengths]): the gradients of
 * simple_rnn's inputs. */
#include "ops/network/recurrent.h"

static const tutti_cell *const cell = &tutti__simple_rnn_cell;

static tutti_status simple_rnn_backward_infer(tutti_infer *node)
{
    return tutti__rnn_backward_infer(node, cell);
}

static tutti_status simple_rnn_backward_gradient(tutti_gradient_call *node)
{
    return tutti__rnn_second_gradient(node, cell);
}

static void simple_rnn_backward_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__rnn_backward_cost(node, cell, ret);
}

static int simple_rnn_backward_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__rnn_backward_split(node, cell, capacity, ret);
}

static tutti_status simple_rnn_backward_run(const tutti_kernel_call *call,
                                            const double *const *inputs, double *const *outputs,
                                            tutti_arena *scratch)
{
    return tutti__rnn_backward_run(call, cell, inputs, outputs, scratch);
}

static tutti_status simple_rnn_backward_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, simple_rnn_backward_run);
}

static const tutti_attr_spec attrs[] = {{"reverse", TUTTI_ATTR_INT, "false"},
                                        PRODUCTS_ATTR,
                                        {"grads", TUTTI_ATTR_INT, "3"},
                                        {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[3,4,2] f32[3,3] f32[2,3] f32[3,3] f32[3,4,3] f32[3,4,3] f32[3,3]",
    "f32[3,4,2] f32[3,3] f32[2,3] f32[3,3] f32[3,4,3] f32[3,3] i32[3]{=4,1,2} | grads=2",
    "f32[2,3,2] f32[2,1] f32[2,1] f32[1,1] f32[2,3,1] f32[2,3,1] | reverse=true grads=1",
    "f32[2,3,2] f32[2,4] f32[2,4] f32[4,4] f32[2,3,4] f32[2,3,4] f32[2,4] i32[2]{=3,1}",
    NULL,
};

const tutti_op tutti_op_simple_rnn_backward = {
    .struct_size = sizeof(tutti_op),
    .name = "simple_rnn_backward",
    .version = 1,
    .doc = "simple_rnn_backward(x, states, kernel, recurrent, y, output gradients by the bits of "
           "`grads`[, lengths]): the gradients of simple_rnn's x, states, kernel, recurrent, bias",
    .category = "network",
    .min_inputs = 5,
    .max_inputs = 8,
    .outputs = 5,
    .attrs = attrs,
    .infer = simple_rnn_backward_infer,
    .gradient = simple_rnn_backward_gradient,
    .cost = simple_rnn_backward_cost,
    .split = simple_rnn_backward_split,
    .reference = simple_rnn_backward_reference,
    .samples = samples,
};
