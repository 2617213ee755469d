/* gru(x, h, kernel, recurrent, bias[, lengths]): gates z, r, n of a = x kernel + bias[0] and
 * b = h recurrent + bias[1], each cut into three parts of `units`:
 *   z = sigmoid(a0 + b0), r = sigmoid(a1 + b1), n = tanh(a2 + r b2), h = z h + (1 - z) n.
 * Outputs the sequence of h, the last h, and reserve = [z, r, n, b2] of each step. */
#include "ops/network/recurrent.h"

extern const tutti_op tutti_op_gru;

static const tutti_cell *const cell = &tutti__gru_cell;

static tutti_status gru_infer(tutti_infer *node)
{
    return tutti__rnn_infer(node, cell);
}

static tutti_status gru_gradient(tutti_gradient_call *node)
{
    return tutti__rnn_gradient(node, cell);
}

static void gru_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__rnn_cost(node, cell, ret);
}

static int gru_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__rnn_split(node, cell, capacity, ret);
}

static tutti_status gru_run(const tutti_kernel_call *call, const double *const *inputs,
                            double *const *outputs, tutti_arena *scratch)
{
    return tutti__rnn_run(call, cell, inputs, outputs, scratch);
}

static tutti_status gru_reference(const tutti_kernel_call *call)
{
    return tutti__on_doubles(call, gru_run);
}

tutti_sym tutti_nn_gru_with(tutti_sym x, tutti_sym h, tutti_sym kernel, tutti_sym recurrent,
                            tutti_sym bias, const tutti_rnn_options *options)
{
    tutti_sym inputs[6] = {x, h, kernel, recurrent, bias};
    return tutti__rnn_build(&tutti_op_gru, 5, inputs, options);
}

static const tutti_attr_spec attrs[] = {
    {"reverse", TUTTI_ATTR_INT, "false"}, PRODUCTS_ATTR, {NULL, TUTTI_ATTR_NONE, NULL}};

static const char *const samples[] = {
    "f32[3,4,2] f32[3,3] f32[2,9] f32[3,9] f32[2,9]",
    "f32[3,4,2] f32[3,2] f32[2,6] f32[2,6] f32[2,6] i32[3]{=4,1,2}",
    "f32[2,3,2] f32[2,1] f32[2,3] f32[1,3] f32[2,3] i64[2]{=0,3} | reverse=true",
    "f32[2,3,2] f32[2,4] f32[2,12] f32[4,12] f32[2,12] i32[2]{=3,1}",
    "f64[3,3,1] f64[3,2] f64[1,6] f64[2,6] f64[2,6] | reverse=true",
    NULL,
};

const tutti_op tutti_op_gru = {
    .struct_size = sizeof(tutti_op),
    .name = "gru",
    .version = 1,
    .doc = "gru(x, h, kernel, recurrent, bias[, lengths]): z = sigmoid(az + bz), "
           "r = sigmoid(ar + br), n = tanh(an + r bn), h = z h + (1 - z) n at each time, where "
           "a = x kernel + bias[0], b = h recurrent + bias[1]; outputs the sequence, the last h, "
           "and [z, r, n, bn]",
    .category = "network",
    .min_inputs = 5,
    .max_inputs = 6,
    .outputs = 3,
    .attrs = attrs,
    .infer = gru_infer,
    .gradient = gru_gradient,
    .cost = gru_cost,
    .split = gru_split,
    .reference = gru_reference,
    .samples = samples,
};
