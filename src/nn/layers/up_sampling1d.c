/* up_sampling1d.c: longer sequences. */
#include "nn/layers/up_sampling.h"

static tutti_sym up_sampling1d_call(tutti_layer_call *call)
{
    const tutti_up_sampling1d_settings *s = call->settings;
    int64_t size = s->size > 0 ? s->size : 2;
    if (!tutti__layer_takes(call, 3, TUTTI_SEQUENCES))
        return TUTTI_NO_SYM;
    return tutti__layer_larger(call, 1, &size, s->interpolation,
                               &(tutti_interpolations){"linear", "cubic"});
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_up_sampling1d_settings, size),
    TUTTI_TEXT_FIELD(tutti_up_sampling1d_settings, interpolation),
    {0},
};

const tutti_layer_kind tutti_layer_up_sampling1d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "up_sampling1d",
    .doc = "up_sampling1d(size): y[t] = x[t / size], or interpolated between centres of steps",
    .settings_size = sizeof(tutti_up_sampling1d_settings),
    .fields = fields,
    .call = up_sampling1d_call,
};
