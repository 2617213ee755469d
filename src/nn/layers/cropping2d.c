/* cropping2d.c: without the sides of images. */
#include "nn/layers/border.h"

static tutti_sym cropping2d_call(tutti_layer_call *call)
{
    const tutti_border2d_settings *s = call->settings;
    tutti_type x = tutti_sym_type(call->inputs[0]);
    tutti_axes begin, after, end = {.count = 3, .values = {TUTTI_LAST}};
    if (!tutti__layer_takes(call, 4, TUTTI_IMAGES) ||
        !tutti__border(call, 2, s->amount, s->pads, &begin, &after))
        return TUTTI_NO_SYM;
    for (int i = 1; i < end.count; i++) {
        if (x.dims[i] >= 0 && begin.values[i] + after.values[i] >= x.dims[i])
            return tutti_layer_fail(call, "takes %lld off axis %d, which has %lld",
                                    (long long)begin.values[i] + (long long)after.values[i], i,
                                    (long long)x.dims[i]);
        end.values[i] = after.values[i] > 0 ? -after.values[i] : TUTTI_LAST;
    }
    return tutti_slice(call->inputs[0], .begin = begin, .end = end);
}

const tutti_layer_kind tutti_layer_cropping2d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "cropping2d",
    .doc = "cropping2d(amount): without so much of the sides of images",
    .settings_size = sizeof(tutti_border2d_settings),
    .fields = tutti__border2d_fields,
    .call = cropping2d_call,
};
