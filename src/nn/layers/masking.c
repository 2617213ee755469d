/* masking.c: hides steps of time that hold one value only. */
#include "nn/layers/common.h"

static tutti_sym masking_call(tutti_layer_call *call)
{
    const tutti_masking_settings *s = call->settings;
    tutti_sym x = call->inputs[0];
    if (!tutti__layer_takes(call, 3, TUTTI_SEQUENCES))
        return TUTTI_NO_SYM;
    tutti_sym mask = tutti_any(tutti_not_equal(x, s->mask_value), .axes = TUTTI_AXES(2));
    call->ret_mask = call->mask.node ? tutti_logical_and(mask, call->mask) : mask;
    return tutti_where(tutti_expand_dims(mask, 2), x, 0);
}

static const tutti_field fields[] = {
    TUTTI_NUMBER_FIELD(tutti_masking_settings, mask_value),
    {0},
};

const tutti_layer_kind tutti_layer_masking = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "masking",
    .doc = "masking(): steps whose features all are mask_value become 0 and are passed over",
    .settings_size = sizeof(tutti_masking_settings),
    .fields = fields,
    .call = masking_call,
};
