/* max_pool2d.c: the maximum of each window. */
#include "nn/layers/common.h"

static tutti_sym call(tutti_layer_call *call)
{
    const tutti_pool2d_settings *s = call->settings;
    int64_t height = tutti__pair(s->pool_size, 0, 2), width = tutti__pair(s->pool_size, 1, 2);
    return tutti_max_pool2d_of(
        call->inputs[0], .window = {height, width},
        .strides = {tutti__pair(s->strides, 0, height), tutti__pair(s->strides, 1, width)},
        .padding = s->padding);
}

static const tutti_field fields[] = {
    TUTTI_INTS_FIELD(tutti_pool2d_settings, pool_size),
    TUTTI_INTS_FIELD(tutti_pool2d_settings, strides),
    TUTTI_TEXT_FIELD(tutti_pool2d_settings, padding),
    {0},
};

const tutti_layer_kind tutti_layer_max_pool2d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "max_pool2d",
    .doc = "max_pool2d(size): the maximum of each window",
    .settings_size = sizeof(tutti_pool2d_settings),
    .fields = fields,
    .call = call,
};
