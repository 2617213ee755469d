/* leaky_relu.c: a smaller slope below zero. */
#include "nn/layers/common.h"

static tutti_sym leaky_relu_call(tutti_layer_call *call)
{
    const tutti_leaky_relu_settings *s = call->settings;
    return tutti_leaky_relu(call->inputs[0], tutti__number_or(s->negative_slope, 0.3));
}

static const tutti_field fields[] = {
    TUTTI_NUMBER_FIELD(tutti_leaky_relu_settings, negative_slope),
    {0},
};

const tutti_layer_kind tutti_layer_leaky_relu = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "leaky_relu",
    .doc = "leaky_relu(): y = x > 0 ? x : negative_slope x",
    .settings_size = sizeof(tutti_leaky_relu_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = leaky_relu_call,
};
