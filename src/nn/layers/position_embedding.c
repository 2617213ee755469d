/* position_embedding.c: a learned vector for each step of time. */
#include "nn/layers/common.h"

/* 0, 1, …, time - 1 for a time that is known only when it runs. */
static tutti_sym steps(tutti_sym x)
{
    tutti_sym row =
        tutti_slice(x, .begin = TUTTI_INDEX(0, 0, 0), .end = TUTTI_INDEX(1, TUTTI_LAST, 1));
    tutti_sym ones = tutti_cast(tutti_ones_like(tutti_squeeze(row, 0, 2)), TUTTI_I64);
    return tutti_cumsum(ones, 0, .exclusive = true);
}

static tutti_sym position_embedding_call(tutti_layer_call *call)
{
    const tutti_position_embedding_settings *s = call->settings;
    tutti_sym x = call->inputs[0];
    tutti_type type = tutti_sym_type(x);
    if (!tutti__layer_takes(call, 3, TUTTI_SEQUENCES))
        return TUTTI_NO_SYM;
    if (s->max_length < 1 || type.dims[1] > s->max_length)
        return tutti_layer_fail(call, "has %lld positions, the input has %lld steps",
                                (long long)s->max_length, (long long)type.dims[1]);
    tutti_sym table =
        tutti_weight(call, "embeddings", TUTTI_TYPE(TUTTI_F32, s->max_length, type.dims[2]),
                     .initializer = s->initializer, .sharding = "sequence,embed");
    const tutti_building *building = call->graph->building;
    if (building->decoding)
        return tutti_add(x, tutti_gather(table, tutti__decoding_positions(call, s->max_length), 0));
    tutti_sym rows = type.dims[1] >= 0 ? tutti_slice_axis(table, 0, 0, type.dims[1])
                                       : tutti_gather(table, steps(x), 0);
    return tutti_sharded(tutti_add(x, rows), "-,sequence,embed");
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_position_embedding_settings, max_length),
    TUTTI_TEXT_FIELD(tutti_position_embedding_settings, initializer),
    {0},
};

const tutti_layer_kind tutti_layer_position_embedding = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "position_embedding",
    .doc = "position_embedding(max_length): y[b, t] = x[b, t] + embeddings[t]",
    .settings_size = sizeof(tutti_position_embedding_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = position_embedding_call,
};
