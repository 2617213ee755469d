/* global_max_pool1d.c: the maximum of each feature over time. */
#include "nn/layers/common.h"

#include <math.h>

/* Of a row that is hidden altogether 0. */
static tutti_sym maximum_of_shown(tutti_sym x, tutti_sym mask)
{
    tutti_sym shown = tutti_expand_dims(mask, 2);
    tutti_sym y = tutti_nn_global_max_pool1d(tutti_where(shown, x, -INFINITY));
    return tutti_where(tutti_any(shown, .axes = TUTTI_AXES(1)), y, 0);
}

static tutti_sym global_max_pool1d_call(tutti_layer_call *call)
{
    const tutti_global_pool_settings *s = call->settings;
    tutti_sym x = call->inputs[0];
    if (!tutti__layer_takes(call, 3, TUTTI_SEQUENCES))
        return TUTTI_NO_SYM;
    tutti_sym y = call->mask.node ? maximum_of_shown(x, call->mask) : tutti_nn_global_max_pool1d(x);
    return s->keepdims ? tutti_expand_dims(y, 1) : y;
}

const tutti_layer_kind tutti_layer_global_max_pool1d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "global_max_pool1d",
    .doc = "global_max_pool1d(): [batch, time, features] to [batch, features] by the maximum",
    .settings_size = sizeof(tutti_global_pool_settings),
    .fields = tutti__global_pool_fields,
    .call = global_max_pool1d_call,
};
