/* global_average_pool2d.c: the mean of each channel. */
#include "nn/layers/common.h"

static tutti_sym global_average_pool2d_call(tutti_layer_call *call)
{
    const tutti_global_pool_settings *s = call->settings;
    if (!tutti__layer_takes(call, 4, TUTTI_IMAGES))
        return TUTTI_NO_SYM;
    tutti_sym y = tutti_nn_global_average_pool2d(call->inputs[0]);
    return s->keepdims ? tutti_expand_dims(tutti_expand_dims(y, 1), 1) : y;
}

const tutti_layer_kind tutti_layer_global_average_pool2d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "global_average_pool2d",
    .doc =
        "global_average_pool2d(): [batch, height, width, channels] to [batch, channels] by the mean",
    .settings_size = sizeof(tutti_global_pool_settings),
    .fields = tutti__global_pool_fields,
    .call = global_average_pool2d_call,
};
