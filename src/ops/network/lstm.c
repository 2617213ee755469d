/* lstm(x, h, c, kernel, recurrent, bias[, lengths]): gates i, f, g, o of
 * x kernel + h recurrent + bias, cut into four parts of `units`:
 *   i, f, o by sigmoid, g by tanh, c = f c + i g, h = o tanh(c).
 * Outputs the sequence of h, the last h, the last c, and reserve = [i, f, g, o, c] of each step. */
#include "ops/network/recurrent.h"

extern const tutti_op tutti_op_lstm;

static const tutti_cell *const cell = &tutti__lstm_cell;

static tutti_status lstm_infer(tutti_infer *node)
{
    return tutti__rnn_infer(node, cell);
}

static tutti_status lstm_gradient(tutti_gradient_call *node)
{
    return tutti__rnn_gradient(node, cell);
}

static void lstm_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__rnn_cost(node, cell, ret);
}

static int lstm_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__rnn_split(node, cell, capacity, ret);
}

static tutti_status lstm_run(const tutti_kernel_call *call, const double *const *inputs,
                             double *const *outputs, tutti_arena *scratch)
{
    return tutti__rnn_run(call, cell, inputs, outputs, scratch);
}

static tutti_status lstm_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, lstm_run);
}

tutti_sym tutti_nn_lstm_with(tutti_sym x, tutti_sym h, tutti_sym c, tutti_sym kernel,
                             tutti_sym recurrent, tutti_sym bias, const tutti_rnn_options *options)
{
    tutti_sym inputs[7] = {x, h, c, kernel, recurrent, bias};
    return tutti__rnn_build(&tutti_op_lstm, 6, inputs, options);
}

static const tutti_attr_spec attrs[] = {
    {"reverse", TUTTI_ATTR_INT, "false"}, PRODUCTS_ATTR, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[3,4,2] f32[3,3] f32[3,3] f32[2,12] f32[3,12] f32[12]",
    "f32[3,4,2] f32[3,2] f32[3,2] f32[2,8] f32[2,8] f32[8] i32[3]{=4,1,2}",
    "f32[2,3,2] f32[2,1] f32[2,1] f32[2,4] f32[1,4] f32[4] i64[2]{=0,3} | reverse=true",
    "f32[2,3,2] f32[2,4] f32[2,4] f32[2,16] f32[4,16] f32[16] i32[2]{=3,1}",
    "f64[3,3,1] f64[3,2] f64[3,2] f64[1,8] f64[2,8] f64[8] | reverse=true",
    NULL,
};

const tutti_op tutti_op_lstm = {
    .struct_size = sizeof(tutti_op),
    .name = "lstm",
    .version = 1,
    .doc =
        "lstm(x, h, c, kernel, recurrent, bias[, lengths]): c = sigmoid(f) c + sigmoid(i) tanh(g), "
        "h = sigmoid(o) tanh(c) at each time, where [i, f, g, o] = x kernel + h recurrent + bias; "
        "outputs the sequence, the last h, the last c, and [i, f, g, o, c]",
    .category = "network",
    .min_inputs = 6,
    .max_inputs = 7,
    .outputs = 4,
    .attrs = attrs,
    .infer = lstm_infer,
    .gradient = lstm_gradient,
    .cost = lstm_cost,
    .split = lstm_split,
    .reference = lstm_reference,
    .samples = samples,
};
