/* rescaling.c: y = x scale + offset. */
#include "nn/layers/common.h"

static tutti_sym rescaling_call(tutti_layer_call *call)
{
    const tutti_rescaling_settings *s = call->settings;
    const tutti_building *building = call->graph->building;
    tutti_type type = tutti_sym_type(call->inputs[0]);
    if (type.dtype == TUTTI_STRING)
        return tutti_layer_fail(call, "takes numbers, the input is strings");
    tutti_sym x = tutti_dtype_is_float(type.dtype) ? call->inputs[0]
                                                   : tutti_cast(call->inputs[0], building->compute);
    x = tutti_mul(x, tutti__number_or(s->scale, 1));
    return s->offset != 0 ? tutti_add(x, s->offset) : x;
}

static const tutti_field fields[] = {
    TUTTI_NUMBER_FIELD(tutti_rescaling_settings, scale),
    TUTTI_NUMBER_FIELD(tutti_rescaling_settings, offset),
    {0},
};

const tutti_layer_kind tutti_layer_rescaling = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "rescaling",
    .doc = "rescaling(scale, offset): y = x scale + offset",
    .settings_size = sizeof(tutti_rescaling_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = rescaling_call,
};
