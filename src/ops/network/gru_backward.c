/* gru_backward(x, h, kernel, recurrent, y, reserve, grads...[, lengths]): the gradients of gru's
 * inputs. */
#include "ops/network/recurrent.h"

static const tutti_cell *const cell = &tutti__gru_cell;

static tutti_status gru_backward_infer(tutti_infer *node)
{
    return tutti__rnn_backward_infer(node, cell);
}

static tutti_status gru_backward_gradient(tutti_gradient_call *node)
{
    return tutti__rnn_second_gradient(node, cell);
}

static void gru_backward_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__rnn_backward_cost(node, cell, ret);
}

static int gru_backward_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__rnn_backward_split(node, cell, capacity, ret);
}

static tutti_status gru_backward_run(const tutti_kernel_call *call, const double *const *inputs,
                                     double *const *outputs, tutti_arena *scratch)
{
    return tutti__rnn_backward_run(call, cell, inputs, outputs, scratch);
}

static tutti_status gru_backward_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, gru_backward_run);
}

static const tutti_attr_spec attrs[] = {{"reverse", TUTTI_ATTR_INT, "false"},
                                        PRODUCTS_ATTR,
                                        {"grads", TUTTI_ATTR_INT, "7"},
                                        {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[3,4,2] f32[3,3] f32[2,9] f32[3,9] f32[3,4,3] f32[3,4,12]{0.1:0.9} f32[3,4,3] "
    "f32[3,3] f32[3,4,12]",
    "f32[3,4,2] f32[3,2] f32[2,6] f32[2,6] f32[3,4,2] f32[3,4,8]{0.1:0.9} f32[3,2] "
    "i32[3]{=4,1,2} | grads=2",
    "f32[2,3,2] f32[2,1] f32[2,3] f32[1,3] f32[2,3,1] f32[2,3,4]{0.1:0.9} f32[2,3,1] | "
    "reverse=true grads=1",
    "f32[2,3,2] f32[2,4] f32[2,12] f32[4,12] f32[2,3,4] f32[2,3,16]{0.1:0.9} f32[2,3,4] "
    "f32[2,4] f32[2,3,16] i32[2]{=3,1} | reverse=true",
    NULL,
};

const tutti_op tutti_op_gru_backward = {
    .struct_size = sizeof(tutti_op),
    .name = "gru_backward",
    .version = 1,
    .doc = "gru_backward(x, states, kernel, recurrent, y, reserve, output gradients by the bits of "
           "`grads`[, lengths]): the gradients of gru's x, states, kernel, recurrent, bias",
    .category = "network",
    .min_inputs = 6,
    .max_inputs = 10,
    .outputs = 5,
    .attrs = attrs,
    .infer = gru_backward_infer,
    .gradient = gru_backward_gradient,
    .cost = gru_backward_cost,
    .split = gru_backward_split,
    .reference = gru_backward_reference,
    .samples = samples,
};
