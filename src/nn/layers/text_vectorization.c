/* text_vectorization.c: the numbers of the words of texts. */
#include "nn/layers/vocabulary.h"

static tutti_sym text_vectorization_call(tutti_layer_call *call)
{
    const tutti_text_vectorization_settings *s = call->settings;
    tutti_sym x = call->inputs[0];
    tutti_type type = tutti_sym_type(x);
    char text[TUTTI_TYPE_TEXT];
    tutti_tensor *vocabulary;
    if (type.rank == 2 && type.dims[1] == 1)
        x = tutti_squeeze(x, 1);
    else if (type.rank != 1 || type.dtype != TUTTI_STRING)
        return tutti_layer_fail(call,
                                "takes one string an example, [batch] or [batch, 1], the "
                                "input is %s",
                                tutti_type_text(&type, text));
    if (s->output_sequence_length < 1)
        return tutti_layer_fail(call, "needs an output_sequence_length of 1 or more, not %lld",
                                (long long)s->output_sequence_length);
    if (!s->vocabulary)
        return tutti_layer_fail(call, "has no vocabulary; give one or find it in data with "
                                      "tutti_adapt_vocabulary");
    if (tutti__vocabulary_parse(s->vocabulary, &vocabulary) != TUTTI_OK)
        return tutti_layer_fail(call, "%s", tutti_error_message());
    tutti_sym y =
        tutti_text_vectorize(x, vocabulary, s->output_sequence_length, .keep_case = s->keep_case,
                             .keep_punctuation = s->keep_punctuation, .characters = s->characters);
    tutti_tensor_release(vocabulary);
    if (s->mask_zero && y.node)
        call->ret_mask = tutti_not_equal(y, 0);
    return y;
}

static const tutti_field fields[] = {
    TUTTI_INT_FIELD(tutti_text_vectorization_settings, output_sequence_length),
    TUTTI_TEXT_FIELD(tutti_text_vectorization_settings, vocabulary),
    TUTTI_INT_FIELD(tutti_text_vectorization_settings, max_tokens),
    TUTTI_FLAG_FIELD(tutti_text_vectorization_settings, keep_case),
    TUTTI_FLAG_FIELD(tutti_text_vectorization_settings, keep_punctuation),
    TUTTI_FLAG_FIELD(tutti_text_vectorization_settings, characters),
    TUTTI_FLAG_FIELD(tutti_text_vectorization_settings, mask_zero),
    {0},
};

const tutti_layer_kind tutti_layer_text_vectorization = {
    .struct_size = sizeof(tutti_layer_kind),
    .name = "text_vectorization",
    .doc =
        "text_vectorization(length): the numbers of the first words of each text, counted from 2; 1 for others, 0 behind the last",
    .settings_size = sizeof(tutti_text_vectorization_settings),
    .fields = fields,
    .call = text_vectorization_call,
};
