/* zero_padding1d.c: zeros at the ends of time. */
#include "nn/layers/border.h"

static tutti_sym zero_padding1d_call(tutti_layer_call *call)
{
    const tutti_border1d_settings *s = call->settings;
    tutti_axes before, after;
    if (!tutti__layer_takes(call, 3, TUTTI_SEQUENCES) ||
        !tutti__border(call, 1, &s->amount, s->pads, &before, &after))
        return TUTTI_NO_SYM;
    return tutti_pad(call->inputs[0], .before = before, .after = after);
}

const tutti_layer_kind tutti_layer_zero_padding1d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "zero_padding1d",
    .doc = "zero_padding1d(amount): zeros at the ends of time",
    .settings_size = sizeof(tutti_border1d_settings),
    .fields = tutti__border1d_fields,
    .call = zero_padding1d_call,
};
