/* multiply.c: y = a b …, element by element. */
#include "nn/layers/common.h"

static tutti_sym multiply_call(tutti_layer_call *call)
{
    call->ret_mask = tutti__layer_masks_and(call);
    return tutti__merge_fold(call->input_count, call->inputs, tutti_mul);
}

const tutti_layer_kind tutti_layer_multiply = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "multiply",
    .doc = "multiply(): y = a b ...",
    .settings_size = sizeof(tutti_layer_settings),
    .min_inputs = 1,
    .max_inputs = -1,
    .flags = TUTTI_LAYER_EACH_STEP,
    .call = multiply_call,
};
