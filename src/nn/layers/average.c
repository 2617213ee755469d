/* average.c: y = the mean of its inputs, element by element. */
#include "nn/layers/common.h"

static tutti_sym average_call(tutti_layer_call *call)
{
    call->ret_mask = tutti__layer_masks_and(call);
    tutti_sym sum = tutti__merge_fold(call->input_count, call->inputs, tutti_add);
    return tutti_mul(sum, 1.0 / call->input_count);
}

const tutti_layer_kind tutti_layer_average = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "average",
    .doc = "average(): y = the mean of its inputs",
    .settings_size = sizeof(tutti_layer_settings),
    .min_inputs = 1,
    .max_inputs = -1,
    .flags = TUTTI_LAYER_EACH_STEP,
    .call = average_call,
};
