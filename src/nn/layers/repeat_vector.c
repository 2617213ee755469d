/* repeat_vector.c: one vector as a sequence. */
#include "nn/layers/common.h"

static tutti_sym repeat_vector_call(tutti_layer_call *call)
{
    const tutti_repeat_vector_settings *s = call->settings;
    if (!tutti__layer_takes(call, 2, "vectors [batch, features]"))
        return TUTTI_NO_SYM;
    if (s->n < 1)
        return tutti_layer_fail(call, "repeats once or more, not %lld times", (long long)s->n);
    return tutti_broadcast_to(tutti_expand_dims(call->inputs[0], 1), -1, s->n, -1);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_repeat_vector_settings, n),
    {0},
};

const tutti_layer_kind tutti_layer_repeat_vector = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "repeat_vector",
    .doc = "repeat_vector(n): y[b, t] = x[b] for n steps t",
    .settings_size = sizeof(tutti_repeat_vector_settings),
    .fields = fields,
    .call = repeat_vector_call,
};
