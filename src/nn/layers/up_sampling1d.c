/* up_sampling1d.c: each step of time several times over. */
#include "nn/layers/common.h"

static tutti_sym call(tutti_layer_call *call)
{
    const tutti_up_sampling1d_settings *s = call->settings;
    tutti_type x = tutti_sym_type(call->inputs[0]);
    int64_t size = s->size > 0 ? s->size : 2;
    if (!tutti__layer_takes(call, 3, TUTTI_SEQUENCES) || !tutti__layer_knows(call, 1))
        return TUTTI_NO_SYM;
    tutti_sym wide = tutti_broadcast_to(tutti_expand_dims(call->inputs[0], 2), -1, -1, size, -1);
    return tutti_reshape(wide, -1, x.dims[1] * size, x.dims[2]);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_up_sampling1d_settings, size),
    {0},
};

const tutti_layer_kind tutti_layer_up_sampling1d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "up_sampling1d",
    .doc = "up_sampling1d(size): y[t] = x[t / size]",
    .settings_size = sizeof(tutti_up_sampling1d_settings),
    .fields = fields,
    .call = call,
};
