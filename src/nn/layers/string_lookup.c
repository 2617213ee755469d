/* string_lookup.c: the number of each string in a vocabulary. */
#include "nn/layers/vocabulary.h"

static tutti_sym string_lookup_call(tutti_layer_call *call)
{
    const tutti_string_lookup_settings *s = call->settings;
    tutti_type type = tutti_sym_type(call->inputs[0]);
    tutti_tensor *vocabulary;
    if (type.dtype != TUTTI_STRING)
        return tutti_layer_fail(call, "takes strings, the input is %s",
                                tutti_dtype_name(type.dtype));
    if (!s->vocabulary)
        return tutti_layer_fail(call, "has no vocabulary; give one or find it in data with "
                                      "tutti_adapt_vocabulary");
    if (tutti__vocabulary_parse(s->vocabulary, &vocabulary) != TUTTI_OK)
        return tutti_layer_fail(call, "%s", tutti_error_message());
    tutti_sym y = tutti_nn_string_lookup(call->inputs[0], vocabulary);
    tutti_tensor_release(vocabulary);
    return y;
}

static const tutti_field fields[] = {
    TUTTI_TEXT_FIELD(tutti_string_lookup_settings, vocabulary),
    TUTTI_INT_FIELD(tutti_string_lookup_settings, max_tokens),
    {0},
};

const tutti_layer_kind tutti_layer_string_lookup = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "string_lookup",
    .doc = "string_lookup(vocabulary): the number of each string, counted from 1; 0 for others",
    .settings_size = sizeof(tutti_string_lookup_settings),
    .fields = fields,
    .call = string_lookup_call,
};
