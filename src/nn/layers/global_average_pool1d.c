/* global_average_pool1d.c: the mean of each feature over time. */
#include "nn/layers/common.h"

/* The sum of what the mask shows, divided by its number; of a row that is hidden altogether 0. */
static tutti_sym mean_of_shown(tutti_sym x, tutti_sym mask)
{
    tutti_sym shown = tutti_cast(mask, tutti_sym_type(x).dtype);
    tutti_sym count = tutti_sum(shown, .axes = TUTTI_AXES(1), .keepdims = true);
    x = tutti_where(tutti_expand_dims(mask, 2), x, 0);
    tutti_sym total = tutti_sum(x, .axes = TUTTI_AXES(1));
    return tutti_div(total, tutti_maximum(count, 1));
}

static tutti_sym global_average_pool1d_call(tutti_layer_call *call)
{
    const tutti_global_pool_settings *s = call->settings;
    tutti_sym x = call->inputs[0];
    if (!tutti__layer_takes(call, 3, TUTTI_SEQUENCES))
        return TUTTI_NO_SYM;
    tutti_sym y =
        call->mask.node ? mean_of_shown(x, call->mask) : tutti_nn_global_average_pool1d(x);
    return s->keepdims ? tutti_expand_dims(y, 1) : y;
}

const tutti_layer_kind tutti_layer_global_average_pool1d = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "global_average_pool1d",
    .doc = "global_average_pool1d(): [batch, time, features] to [batch, features] by the mean",
    .settings_size = sizeof(tutti_global_pool_settings),
    .fields = tutti__global_pool_fields,
    .call = global_average_pool1d_call,
};
