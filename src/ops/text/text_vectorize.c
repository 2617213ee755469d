/* text_vectorize.c: the numbers of the first words of each text. */
#include <stdlib.h>

#include "ops/text/text.h"

static tutti_status text_vectorize_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0];
    int64_t dims[TUTTI_MAX_RANK + 1], length = RULE_INT(node, "length");
    TUTTI_TRY(tutti__words_check(node));
    if (length < 1)
        return RULE_FAIL(node, TUTTI_INVALID, "length is %lld, needs 1 or more", (long long)length);
    memcpy(dims, x->dims, sizeof x->dims);
    dims[x->rank] = length;
    return tutti__shape_output(node, 0, TUTTI_I64, x->rank + 1, dims);
}

static tutti_status text_vectorize_reference(const tutti_kernel_call *call)
{
    const tutti_string *x = call->inputs[0].data;
    int64_t *y = call->outputs[0].data, count = tutti_view_count(&call->inputs[0]);
    int64_t length = RULE_INT(call, "length");
    tutti_words words = {.keep_case = RULE_INT(call, "keep_case") != 0,
                         .keep_punctuation = RULE_INT(call, "keep_punctuation") != 0,
                         .characters = RULE_INT(call, "characters") != 0};
    for (int64_t i = 0; i < count; i++) {
        int64_t *row = y + i * length, at = 0;
        words.at = x[i].data;
        words.end = x[i].size > 0 ? x[i].data + x[i].size : x[i].data;
        while (at < length && x[i].size > 0 && tutti__words_next(&words))
            row[at++] = tutti__words_find(call, words.word, words.size);
        while (at < length)
            row[at++] = 0;
    }
    return TUTTI_OK;
}

static int text_vectorize_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_other_axes(node, node->inputs[0].rank, capacity, ret);
}

extern const tutti_op tutti_op_text_vectorize;
tutti_sym tutti_text_vectorize_with(tutti_sym x, tutti_tensor *vocabulary, int64_t length,
                                    const tutti_text_options *options)
{
    RULE_OPTIONS(tutti_text_options, o, options);
    tutti_tensor *words;
    int64_t *ids;
    if (!x.node)
        return x;
    if (tutti__words_sort(vocabulary, o.first ? o.first : 2, &words, &ids) != TUTTI_OK)
        return tutti__poison(x.node->graph, TUTTI_INVALID, "text_vectorize: %s",
                             tutti_error_message());
    tutti_sym y = TUTTI_NARY(
        &tutti_op_text_vectorize, ((tutti_sym[]){x}), TUTTI_TENSOR_ATTR("words", words),
        TUTTI_INTS("ids", tutti_tensor_count(words), ids),
        TUTTI_INT("unknown", o.unknown ? o.unknown : 1), TUTTI_INT("length", length),
        TUTTI_INT("keep_case", o.keep_case), TUTTI_INT("keep_punctuation", o.keep_punctuation),
        TUTTI_INT("characters", o.characters));
    tutti_tensor_release(words);
    free(ids);
    return y;
}

static const tutti_attr_spec attrs[] = {
    {"words", TUTTI_ATTR_TENSOR, NULL},      {"ids", TUTTI_ATTR_INTS, NULL},
    {"unknown", TUTTI_ATTR_INT, "1"},        {"length", TUTTI_ATTR_INT, NULL},
    {"keep_case", TUTTI_ATTR_INT, "false"},  {"keep_punctuation", TUTTI_ATTR_INT, "false"},
    {"characters", TUTTI_ATTR_INT, "false"}, {NULL},
};
static const char *const samples[] = {
    "string[3]{=Red,green,red} | words=string[2]{=blue,red} ids=[3,2] length=2",
    "string[2,2]{=abc,Ca,b,d} | words=string[3]{=a,b,c} ids=[2,3,4] length=3 characters=true",
    "string[2]{=A,a} | words=string[1]{=a} ids=[2] length=1 keep_case=true",
    "string[0] | words=string[1]{=a} ids=[2] length=2",
    NULL,
};

const tutti_op tutti_op_text_vectorize = {
    .struct_size = sizeof(tutti_op),
    .name = "text_vectorize",
    .version = 1,
    .doc =
        "text_vectorize(x; words, ids, length): y[.., j] = number of word j of text x[..], 0 behind the last",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT | TUTTI_OP_HOST,
    .attrs = attrs,
    .infer = text_vectorize_infer,
    .cost = tutti__cost_move,
    .split = text_vectorize_split,
    .reference = text_vectorize_reference,
    .samples = samples,
};
