/* embedding.c: a vector for each id. */
#include "nn/layers/common.h"

static tutti_sym embedding_call(tutti_layer_call *call)
{
    const tutti_embedding_settings *s = call->settings;
    const tutti_building *building = call->graph->building;
    tutti_sym ids = call->inputs[0];
    tutti_type type = tutti_sym_type(ids);
    char text[TUTTI_TYPE_TEXT];
    if (s->input_dim < 1 || s->output_dim < 1)
        return tutti_layer_fail(call, "needs a table of at least 1 x 1, not %lld x %lld",
                                (long long)s->input_dim, (long long)s->output_dim);
    bool reverse = tutti_dtype_is_float(type.dtype) && type.rank >= 2 &&
                   type.dims[type.rank - 1] == s->output_dim;
    if (type.dtype != TUTTI_I32 && type.dtype != TUTTI_I64 && !reverse)
        return tutti_layer_fail(call,
                                "takes integers (i32 or i64), or floats [batch, …, %lld] to score "
                                "all ids by; the input is %s",
                                (long long)s->output_dim, tutti_type_text(&type, text));
    if (!reverse && s->mask_zero && type.rank != 2)
        return tutti_layer_fail(call, "mask_zero needs ids [batch, time], the input is %s",
                                tutti_type_text(&type, text));
    /* The table stays f32 and is not cast as a whole: its gradient is sparse. */
    tutti_sym table = tutti_weight(
        call, "embeddings", TUTTI_TYPE(TUTTI_F32, s->input_dim, s->output_dim),
        .initializer = tutti__text_or(s->embeddings_initializer, "uniform"),
        .regularizer = s->embeddings_regularizer, .constraint = s->embeddings_constraint,
        .full_precision = true, .sharding = "vocab,embed");
    if (reverse)
        return tutti_matmul(call->inputs[0], tutti_cast(tutti_read(table), building->compute),
                            .transpose_b = true);
    if (s->mask_zero)
        call->ret_mask = tutti_not_equal(ids, 0);
    tutti_sym rows = tutti_embedding_lookup(table, ids);
    return building->compute == TUTTI_F32 ? rows : tutti_cast(rows, building->compute);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_embedding_settings, input_dim),
    TUTTI_INT_FIELD(tutti_embedding_settings, output_dim),
    TUTTI_FLAG_FIELD(tutti_embedding_settings, mask_zero),
    TUTTI_TEXT_FIELD(tutti_embedding_settings, embeddings_initializer),
    TUTTI_TEXT_FIELD(tutti_embedding_settings, embeddings_regularizer),
    TUTTI_TEXT_FIELD(tutti_embedding_settings, embeddings_constraint),
    {0},
};

const tutti_layer_kind tutti_layer_embedding = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "embedding",
    .doc = "embedding(input_dim, output_dim): y = embeddings[x]; of floats y = x embeddings^T",
    .settings_size = sizeof(tutti_embedding_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = embedding_call,
};
