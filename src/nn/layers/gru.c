/* gru.c: gated recurrent units. */
#include "nn/layers/common.h"

static tutti_sym gru_run(tutti_sym x, const tutti_sym *states, const tutti_sym *weights,
                         const tutti_rnn_options *options)
{
    return tutti_nn_gru_with(x, states[0], weights[0], weights[1], weights[2], options);
}

static const tutti_recurrence recurrence = {
    .gates = 3, .states = 1, .two_biases = true, .run = gru_run};

static tutti_sym gru_call(tutti_layer_call *call)
{
    return tutti__layer_recurrent(call, &recurrence);
}

const tutti_layer_kind tutti_layer_gru = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "gru",
    .doc = "gru(units): h = z h + (1 - z) n with update gate z, reset gate r and candidate n",
    .settings_size = sizeof(tutti_rnn_settings),
    .fields = tutti__rnn_fields,
    .min_inputs = 1,
    .max_inputs = 3,
    .call = gru_call,
};
