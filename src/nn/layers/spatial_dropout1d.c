/* spatial_dropout1d.c: in training some channels of an example are zero. */
#include "nn/layers/common.h"

static tutti_sym spatial_dropout1d_call(tutti_layer_call *call)
{
    const tutti_dropout_settings *s = call->settings;
    if (!tutti__layer_takes(call, 3, TUTTI_SEQUENCES))
        return TUTTI_NO_SYM;
    return tutti__layer_dropout_shared(call, tutti_identity(call->inputs[0]), s->rate, s->seed, 1,
                                       2);
}

const tutti_layer_kind tutti_layer_spatial_dropout1d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "spatial_dropout1d",
    .doc = "spatial_dropout1d(rate): dropout of whole channels of an example",
    .settings_size = sizeof(tutti_dropout_settings),
    .fields = tutti__dropout_fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = spatial_dropout1d_call,
};
