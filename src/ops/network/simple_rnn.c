/* simple_rnn(x, h, kernel, recurrent, bias[, lengths]): h = tanh(x kernel + h recurrent + bias),
 * step by step. Outputs the sequence of h and the last h. */
#include "ops/network/recurrent.h"

extern const tutti_op tutti_op_simple_rnn;

static const tutti_cell *const cell = &tutti__simple_rnn_cell;

static tutti_status simple_rnn_infer(tutti_infer *node)
{
    return tutti__rnn_infer(node, cell);
}

static tutti_status simple_rnn_gradient(tutti_gradient_call *node)
{
    return tutti__rnn_gradient(node, cell);
}

static void simple_rnn_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__rnn_cost(node, cell, ret);
}

static int simple_rnn_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__rnn_split(node, cell, capacity, ret);
}

static tutti_status simple_rnn_run(const tutti_kernel_call *call, const double *const *inputs,
                                   double *const *outputs, tutti_arena *scratch)
{
    return tutti__rnn_run(call, cell, inputs, outputs, scratch);
}

static tutti_status simple_rnn_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, simple_rnn_run);
}

tutti_sym tutti_nn_simple_rnn_with(tutti_sym x, tutti_sym h, tutti_sym kernel, tutti_sym recurrent,
                                   tutti_sym bias, const tutti_rnn_options *options)
{
    tutti_sym inputs[6] = {x, h, kernel, recurrent, bias};
    return tutti__rnn_build(&tutti_op_simple_rnn, 5, inputs, options);
}

static const tutti_attr_spec attrs[] = {
    {"reverse", TUTTI_ATTR_INT, "false"}, PRODUCTS_ATTR, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[3,4,2] f32[3,3] f32[2,3] f32[3,3] f32[3]",
    "f32[3,4,2] f32[3,3] f32[2,3] f32[3,3] f32[3] i32[3]{=4,1,2}",
    "f32[2,3,2] f32[2,1] f32[2,1] f32[1,1] f32[1] i64[2]{=0,3} | reverse=true",
    "f32[2,3,2] f32[2,4] f32[2,4] f32[4,4] f32[4] i32[2]{=3,1}",
    "f64[3,3,1] f64[3,4] f64[1,4] f64[4,4] f64[4] | reverse=true",
    NULL,
};

const tutti_op tutti_op_simple_rnn = {
    .struct_size = sizeof(tutti_op),
    .name = "simple_rnn",
    .version = 1,
    .doc = "simple_rnn(x, h, kernel, recurrent, bias[, lengths]): "
           "h = tanh(x kernel + h recurrent + bias) at each time; outputs the sequence and the "
           "last h",
    .category = "network",
    .min_inputs = 5,
    .max_inputs = 6,
    .outputs = 2,
    .attrs = attrs,
    .infer = simple_rnn_infer,
    .gradient = simple_rnn_gradient,
    .cost = simple_rnn_cost,
    .split = simple_rnn_split,
    .reference = simple_rnn_reference,
    .samples = samples,
};
