/* dropout.c: in training some elements are zero. */
#include "nn/layers/common.h"

static tutti_sym call(tutti_layer_call *call)
{
    const tutti_dropout_settings *s = call->settings;
    tutti_building *building = call->graph->building;
    if (!(s->rate >= 0 && s->rate < 1))
        return tutti_layer_fail(call, "the rate is from 0 to below 1, not %g", s->rate);
    if (!call->training || s->rate == 0)
        return tutti_identity(call->inputs[0]);
    /* The mask follows from the layer's name, not from the graph it stands in. */
    uint64_t salt = tutti__hash_string(tutti__hash_string(7, building->prefix),
                                       tutti_layer_name(call->layer));
    return tutti_dropout_of(call->inputs[0], TUTTI_NO_SYM, s->rate,
                            .seed = s->seed ? s->seed : (int64_t)building->seed,
                            .salt = (int64_t)(salt >> 1));
}

static const tutti_field fields[] = {
    TUTTI_NUMBER_FIELD(tutti_dropout_settings, rate),
    TUTTI_INT_FIELD(tutti_dropout_settings, seed),
    {0},
};

const tutti_layer_kind tutti_layer_dropout = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "dropout",
    .doc = "dropout(rate): in training y = x keep / (1 - rate), else y = x",
    .settings_size = sizeof(tutti_dropout_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK,
    .call = call,
};
