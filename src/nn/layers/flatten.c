/* flatten.c: [batch, …] as [batch, everything]. */
#include "nn/layers/common.h"

static tutti_sym flatten_call(tutti_layer_call *call)
{
    return tutti_nn_flatten(call->inputs[0]);
}

const tutti_layer_kind tutti_layer_flatten = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "flatten",
    .doc = "flatten(): [batch, ...] as [batch, everything]",
    .call = flatten_call,
};
