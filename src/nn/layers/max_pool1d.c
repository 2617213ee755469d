/* max_pool1d.c: the maximum of each window of time. */
#include "nn/layers/common.h"

static tutti_sym max_pool1d_call(tutti_layer_call *call)
{
    const tutti_pool1d_settings *s = call->settings;
    int64_t window = s->pool_size > 0 ? s->pool_size : 2;
    if (!tutti__layer_takes(call, 3, TUTTI_SEQUENCES))
        return TUTTI_NO_SYM;
    return tutti_nn_max_pool1d(call->inputs[0], .pool_size = window,
                               .strides = s->strides > 0 ? s->strides : window,
                               .padding = s->padding);
}

const tutti_layer_kind tutti_layer_max_pool1d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "max_pool1d",
    .doc = "max_pool1d(size): the maximum of each window of time",
    .settings_size = sizeof(tutti_pool1d_settings),
    .fields = tutti__pool1d_fields,
    .call = max_pool1d_call,
};
