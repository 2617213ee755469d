/* zero_padding2d.c: zeros at the sides of images. */
#include "nn/layers/border.h"

static tutti_sym zero_padding2d_call(tutti_layer_call *call)
{
    const tutti_border2d_settings *s = call->settings;
    tutti_axes before, after;
    if (!tutti__layer_takes(call, 4, TUTTI_IMAGES) ||
        !tutti__border(call, 2, s->amount, s->pads, &before, &after))
        return TUTTI_NO_SYM;
    return tutti_pad(call->inputs[0], .before = before, .after = after);
}

const tutti_layer_kind tutti_layer_zero_padding2d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "zero_padding2d",
    .doc = "zero_padding2d(amount): zeros at the sides of images",
    .settings_size = sizeof(tutti_border2d_settings),
    .fields = tutti__border2d_fields,
    .call = zero_padding2d_call,
};
