/* softmax.c: probabilities along an axis. */
#include "nn/layers/common.h"

static tutti_sym softmax_call(tutti_layer_call *call)
{
    const tutti_softmax_settings *s = call->settings;
    return tutti_softmax(call->inputs[0], .axes = TUTTI_AXES(s->axis ? (int)s->axis : -1));
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_softmax_settings, axis),
    {0},
};

const tutti_layer_kind tutti_layer_softmax = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "softmax",
    .doc = "softmax(): y = e^x / sum(e^x) along an axis",
    .settings_size = sizeof(tutti_softmax_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK,
    .call = softmax_call,
};
