/* lstm.c: long short-term memory. */
#include "nn/layers/common.h"

static tutti_sym lstm_run(tutti_sym x, const tutti_sym *states, const tutti_sym *weights,
                          const tutti_rnn_options *options)
{
    return tutti_nn_lstm_with(x, states[0], states[1], weights[0], weights[1], weights[2], options);
}

static const tutti_recurrence recurrence = {
    .gates = 4, .states = 2, .two_biases = false, .run = lstm_run};

static tutti_sym lstm_call(tutti_layer_call *call)
{
    return tutti__layer_recurrent(call, &recurrence);
}

const tutti_layer_kind tutti_layer_lstm = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "lstm",
    .doc = "lstm(units): c = f c + i g, h = o tanh(c) with gates i, f, o and candidate g",
    .settings_size = sizeof(tutti_rnn_settings),
    .fields = tutti__rnn_fields,
    .min_inputs = 1,
    .max_inputs = 5,
    .call = lstm_call,
};
