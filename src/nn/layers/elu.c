/* elu.c: exponential below zero. */
#include "nn/layers/common.h"

static tutti_sym elu_call(tutti_layer_call *call)
{
    const tutti_elu_settings *s = call->settings;
    return tutti_elu(call->inputs[0], tutti__number_or(s->alpha, 1));
}

static const tutti_field fields[] = {
    TUTTI_NUMBER_FIELD(tutti_elu_settings, alpha),
    {0},
};

const tutti_layer_kind tutti_layer_elu = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "elu",
    .doc = "elu(): y = x > 0 ? x : alpha (e^x - 1)",
    .settings_size = sizeof(tutti_elu_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = elu_call,
};
