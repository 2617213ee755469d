/* max_pool2d.c: the maximum of each window. */
#include "nn/layers/common.h"

static tutti_sym max_pool2d_call(tutti_layer_call *call)
{
    const tutti_pool2d_settings *s = call->settings;
    int64_t height = tutti__pair(s->pool_size, 0, 2), width = tutti__pair(s->pool_size, 1, 2);
    if (!tutti__layer_takes(call, 4, TUTTI_IMAGES))
        return TUTTI_NO_SYM;
    return tutti_nn_max_pool2d(
        call->inputs[0], .pool_size = {height, width},
        .strides = {tutti__pair(s->strides, 0, height), tutti__pair(s->strides, 1, width)},
        .padding = s->padding);
}

const tutti_layer_kind tutti_layer_max_pool2d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "max_pool2d",
    .doc = "max_pool2d(size): the maximum of each window",
    .settings_size = sizeof(tutti_pool2d_settings),
    .fields = tutti__pool2d_fields,
    .call = max_pool2d_call,
};
