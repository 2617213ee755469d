/* activation.c: y = activation(x). */
#include "nn/layers/common.h"

static tutti_sym activation_call(tutti_layer_call *call)
{
    const tutti_activation_settings *s = call->settings;
    return tutti_nn_activation(tutti_identity(call->inputs[0]), s->activation);
}

static const tutti_field fields[] = {
    TUTTI_TEXT_FIELD(tutti_activation_settings, activation),
    {0},
};

const tutti_layer_kind tutti_layer_activation = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "activation",
    .doc = "activation(name): y = name(x), any operator of one input",
    .settings_size = sizeof(tutti_activation_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = activation_call,
};
