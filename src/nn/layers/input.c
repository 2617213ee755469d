/* input.c: the shape of one example, said by the first layer of a sequential model. */
#include "nn/layers/common.h"

static tutti_sym input_call(tutti_layer_call *call)
{
    const tutti_input_settings *s = call->settings;
    tutti_type type = tutti_sym_type(call->inputs[0]);
    bool fits = type.rank == s->rank + 1;
    for (int i = 0; fits && i < s->rank; i++)
        fits = s->dims[i] < 0 || type.dims[i + 1] < 0 || s->dims[i] == type.dims[i + 1];
    if (!fits) {
        char text[TUTTI_TYPE_TEXT], wanted[TUTTI_TYPE_TEXT];
        tutti_type want = {.dtype = type.dtype, .rank = (int32_t)s->rank};
        for (int i = 0; i < s->rank && i < TUTTI_MAX_RANK; i++)
            want.dims[i] = s->dims[i];
        return tutti_layer_fail(call, "an example is %s, the data has %s (batch first)",
                                tutti_type_text(&want, wanted), tutti_type_text(&type, text));
    }
    return tutti_identity(call->inputs[0]);
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_input_settings, dtype),
    TUTTI_INT_FIELD(tutti_input_settings, rank),
    TUTTI_INTS_FIELD(tutti_input_settings, dims),
    {0},
};

const tutti_layer_kind tutti_layer_input = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "input",
    .doc = "input(shape): y = x, whose examples must have this shape",
    .settings_size = sizeof(tutti_input_settings),
    .fields = fields,
    .flags = TUTTI_LAYER_KEEPS_MASK | TUTTI_LAYER_EACH_STEP,
    .call = input_call,
};
