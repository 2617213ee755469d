/* up_sampling3d.c: larger volumes. */
#include "nn/layers/up_sampling.h"

static tutti_sym up_sampling3d_call(tutti_layer_call *call)
{
    const tutti_up_sampling3d_settings *s = call->settings;
    int64_t times[3];
    for (int i = 0; i < 3; i++)
        times[i] = tutti__pair(s->size, i, 2);
    if (!tutti__layer_takes(call, 5, TUTTI_VOLUMES))
        return TUTTI_NO_SYM;
    return tutti__layer_larger(call, 3, times, s->interpolation,
                               &(tutti_interpolations){"trilinear", "tricubic"});
}

static const tutti_field fields[] = {
    TUTTI_INTS_FIELD(tutti_up_sampling3d_settings, size),
    TUTTI_TEXT_FIELD(tutti_up_sampling3d_settings, interpolation),
    {0},
};

const tutti_layer_kind tutti_layer_up_sampling3d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "up_sampling3d",
    .doc =
        "up_sampling3d(size): y[d, h, w] = x[d / size, h / size, w / size], or interpolated between centres of cells",
    .settings_size = sizeof(tutti_up_sampling3d_settings),
    .fields = fields,
    .call = up_sampling3d_call,
};
