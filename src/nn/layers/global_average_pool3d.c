/* global_average_pool3d.c: the mean of each channel of a volume. */
#include "nn/layers/common.h"

static tutti_sym global_average_pool3d_call(tutti_layer_call *call)
{
    const tutti_global_pool_settings *s = call->settings;
    if (!tutti__layer_takes(call, 5, TUTTI_VOLUMES))
        return TUTTI_NO_SYM;
    tutti_sym y = tutti_nn_global_average_pool3d(call->inputs[0]);
    for (int i = 0; i < 3 && s->keepdims; i++)
        y = tutti_expand_dims(y, 1);
    return y;
}

const tutti_layer_kind tutti_layer_global_average_pool3d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "global_average_pool3d",
    .doc =
        "global_average_pool3d(): [batch, depth, height, width, channels] to [batch, channels] by the "
        "mean",
    .settings_size = sizeof(tutti_global_pool_settings),
    .fields = tutti__global_pool_fields,
    .call = global_average_pool3d_call,
};
