/* simple_rnn.c: h = tanh(x kernel + h recurrent_kernel + bias). */
#include "nn/layers/common.h"

static tutti_sym simple_rnn_run(tutti_sym x, const tutti_sym *states, const tutti_sym *weights,
                                const tutti_rnn_options *options)
{
    return tutti_nn_simple_rnn_with(x, states[0], weights[0], weights[1], weights[2], options);
}

static const tutti_recurrence recurrence = {
    .gates = 1, .states = 1, .two_biases = false, .run = simple_rnn_run};

static tutti_sym simple_rnn_call(tutti_layer_call *call)
{
    return tutti__layer_recurrent(call, &recurrence);
}

const tutti_layer_kind tutti_layer_simple_rnn = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "simple_rnn",
    .doc = "simple_rnn(units): h = tanh(x kernel + h recurrent_kernel + bias)",
    .settings_size = sizeof(tutti_rnn_settings),
    .fields = tutti__rnn_fields,
    .min_inputs = 1,
    .max_inputs = 3,
    .call = simple_rnn_call,
};
