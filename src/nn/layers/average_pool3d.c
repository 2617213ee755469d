/* average_pool3d.c: the mean of each window of a volume. */
#include "nn/layers/common.h"

static tutti_sym average_pool3d_call(tutti_layer_call *call)
{
    const tutti_pool3d_settings *s = call->settings;
    int64_t window[3], strides[3];
    if (!tutti__layer_takes(call, 5, TUTTI_VOLUMES) || !tutti__layer_knows(call, 1))
        return TUTTI_NO_SYM;
    for (int i = 0; i < 3; i++) {
        window[i] = tutti__pair(s->pool_size, i, 2);
        strides[i] = tutti__pair(s->strides, i, window[i]);
    }
    return tutti_nn_average_pool3d(call->inputs[0], .pool_size = {window[0], window[1], window[2]},
                                   .strides = {strides[0], strides[1], strides[2]},
                                   .padding = s->padding);
}

const tutti_layer_kind tutti_layer_average_pool3d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "average_pool3d",
    .doc = "average_pool3d(size): the mean of each window of depth, height and width",
    .settings_size = sizeof(tutti_pool3d_settings),
    .fields = tutti__pool3d_fields,
    .call = average_pool3d_call,
};
