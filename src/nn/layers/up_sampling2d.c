/* up_sampling2d.c: larger images. */
#include "nn/layers/up_sampling.h"

static tutti_sym up_sampling2d_call(tutti_layer_call *call)
{
    const tutti_up_sampling2d_settings *s = call->settings;
    int64_t times[2];
    for (int i = 0; i < 2; i++)
        times[i] = tutti__pair(s->size, i, 2);
    if (!tutti__layer_takes(call, 4, TUTTI_IMAGES))
        return TUTTI_NO_SYM;
    return tutti__layer_larger(call, 2, times, s->interpolation,
                               &(tutti_interpolations){"bilinear", "bicubic"});
}

static const tutti_field fields[] = {
    TUTTI_INTS_FIELD(tutti_up_sampling2d_settings, size),
    TUTTI_TEXT_FIELD(tutti_up_sampling2d_settings, interpolation),
    {0},
};

const tutti_layer_kind tutti_layer_up_sampling2d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "up_sampling2d",
    .doc =
        "up_sampling2d(size): y[h, w] = x[h / size, w / size], or interpolated between centres of pixels",
    .settings_size = sizeof(tutti_up_sampling2d_settings),
    .fields = fields,
    .call = up_sampling2d_call,
};
