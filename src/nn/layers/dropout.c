/* dropout.c: in training some elements are zero. */
#include "nn/layers/common.h"

static tutti_sym dropout_call(tutti_layer_call *call)
{
    const tutti_dropout_settings *s = call->settings;
    return tutti__layer_dropout(call, tutti_identity(call->inputs[0]), s->rate, s->seed, "");
}

const tutti_layer_kind tutti_layer_dropout = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "dropout",
    .doc = "dropout(rate): in training y = x keep / (1 - rate), else y = x",
    .settings_size = sizeof(tutti_dropout_settings),
    .fields = tutti__dropout_fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = dropout_call,
};
