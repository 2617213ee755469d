/* concatenate.c: inputs side by side along an axis. */
#include "nn/layers/common.h"

/* The mask of input i, or one that lets all through: bool [batch, time]. */
static tutti_sym mask_or_all(tutti_layer_call *call, int i)
{
    tutti_sym mask = tutti__layer_mask(call, i), x = call->inputs[i];
    tutti_axes rest = {.count = tutti_sym_type(x).rank - 2};
    if (mask.node)
        return mask;
    for (int k = 0; k < rest.count; k++)
        rest.values[k] = k + 2;
    tutti_sym times = rest.count > 0 ? tutti_sum(x, .axes = rest) : x;
    return tutti_cast(tutti_ones_like(times), TUTTI_BOOL);
}

static void join_masks(tutti_layer_call *call, int64_t axis)
{
    tutti_sym all[64];
    call->ret_mask = tutti__layer_masks_and(call);
    if (!call->ret_mask.node || axis != 1)
        return;
    for (int i = 0; i < call->input_count; i++)
        all[i] = mask_or_all(call, i);
    call->ret_mask = tutti_concatenate(call->input_count, all, .axis = 1);
}

static tutti_sym concatenate_call(tutti_layer_call *call)
{
    const tutti_concatenate_settings *s = call->settings;
    int rank = tutti_sym_type(call->inputs[0]).rank;
    int64_t axis = s->axis == 0 ? rank - 1 : s->axis < 0 ? s->axis + rank : s->axis;
    if (axis < 1 || axis >= rank)
        return tutti_layer_fail(call, "joins along axis 1 to %d, not %lld; axis 0 is the batch",
                                rank - 1, (long long)s->axis);
    join_masks(call, axis);
    return tutti_concatenate(call->input_count, call->inputs, .axis = (int)axis);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_concatenate_settings, axis),
    {0},
};

const tutti_layer_kind tutti_layer_concatenate = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "concatenate",
    .doc = "concatenate(): inputs side by side along an axis",
    .settings_size = sizeof(tutti_concatenate_settings),
    .fields = fields,
    .min_inputs = 1,
    .max_inputs = -1,
    .call = concatenate_call,
};
