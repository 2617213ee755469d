/* add.c: y = a + b + …, element by element. */
#include "nn/layers/common.h"

static tutti_sym add_call(tutti_layer_call *call)
{
    call->ret_mask = tutti__layer_masks_and(call);
    return tutti__merge_fold(call->input_count, call->inputs, tutti_add);
}

const tutti_layer_kind tutti_layer_add = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "add",
    .doc = "add(): y = a + b + ...",
    .settings_size = sizeof(tutti_layer_settings),
    .min_inputs = 1,
    .max_inputs = -1,
    .flags = TUTTI_LAYER_EACH_STEP,
    .call = add_call,
};
