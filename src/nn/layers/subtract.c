/* subtract.c: y = a - b, element by element. */
#include "nn/layers/common.h"

static tutti_sym subtract_call(tutti_layer_call *call)
{
    call->ret_mask = tutti__layer_masks_and(call);
    return tutti__merge_fold(call->input_count, call->inputs, tutti_sub);
}

const tutti_layer_kind tutti_layer_subtract = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "subtract",
    .doc = "subtract(): y = a - b",
    .settings_size = sizeof(tutti_layer_settings),
    .min_inputs = 2,
    .max_inputs = 2,
    .flags = TUTTI_LAYER_EACH_STEP,
    .call = subtract_call,
};
