/* prelu.c: a slope below zero that is learnt. */
#include "nn/layers/common.h"

/* x [batch, …, features]; alpha [features], or [1] when all share one */
static tutti_sym prelu_call(tutti_layer_call *call)
{
    const tutti_prelu_settings *s = call->settings;
    tutti_type type = tutti_sym_type(call->inputs[0]);
    if (type.rank < 2 || !tutti__layer_takes(call, type.rank, "[batch, …, features]"))
        return tutti_layer_fail(call, "takes floats [batch, …, features]");
    tutti_sym alpha =
        tutti_weight(call, "alpha", TUTTI_TYPE(TUTTI_F32, s->shared ? 1 : type.dims[type.rank - 1]),
                     .initializer = tutti__text_or(s->alpha_initializer, "constant(0.25)"),
                     .regularizer = s->alpha_regularizer, .constraint = s->alpha_constraint,
                     .sharding = s->shared ? NULL : "channels");
    return tutti_prelu(call->inputs[0], alpha);
}

static const tutti_field fields[] = {
    TUTTI_FLAG_FIELD(tutti_prelu_settings, shared),
    TUTTI_TEXT_FIELD(tutti_prelu_settings, alpha_initializer),
    TUTTI_TEXT_FIELD(tutti_prelu_settings, alpha_regularizer),
    TUTTI_TEXT_FIELD(tutti_prelu_settings, alpha_constraint),
    {0},
};

const tutti_layer_kind tutti_layer_prelu = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "prelu",
    .doc = "prelu(): y = x > 0 ? x : alpha x with a learnt alpha for each feature",
    .settings_size = sizeof(tutti_prelu_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = prelu_call,
};
