/* minimum.c: y = the smallest of its inputs, element by element. */
#include "nn/layers/common.h"

static tutti_sym minimum_call(tutti_layer_call *call)
{
    call->ret_mask = tutti__layer_masks_and(call);
    return tutti__merge_fold(call->input_count, call->inputs, tutti_minimum);
}

const tutti_layer_kind tutti_layer_minimum = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "minimum",
    .doc = "minimum(): y = the smallest of its inputs",
    .settings_size = sizeof(tutti_layer_settings),
    .min_inputs = 1,
    .max_inputs = -1,
    .flags = TUTTI_LAYER_EACH_STEP,
    .call = minimum_call,
};
