/* string_lookup.c: the number of each string in a vocabulary. */
#include <stdlib.h>

#include "ops/text/text.h"

static tutti_status string_lookup_infer(tutti_infer *node)
{
    TUTTI_TRY(tutti__words_check(node));
    return tutti__shape_output(node, 0, TUTTI_I64, node->inputs[0].rank, node->inputs[0].dims);
}

static tutti_status string_lookup_reference(const tutti_kernel_call *call)
{
    const tutti_string *x = call->inputs[0].data;
    int64_t *y = call->outputs[0].data, count = tutti_view_count(&call->inputs[0]);
    for (int64_t i = 0; i < count; i++)
        y[i] = tutti__words_find(call, x[i].data, x[i].size);
    return TUTTI_OK;
}

static int string_lookup_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_other_axes(node, -1, capacity, ret);
}

extern const tutti_op tutti_op_string_lookup;
tutti_sym tutti_nn_string_lookup_with(tutti_sym x, tutti_tensor *vocabulary,
                                      const tutti_text_options *options)
{
    RULE_OPTIONS(tutti_text_options, o, options);
    tutti_tensor *words;
    int64_t *ids;
    if (!x.node)
        return x;
    if (tutti__words_sort(vocabulary, o.first ? o.first : 1, &words, &ids) != TUTTI_OK)
        return tutti__poison(x.node->graph, TUTTI_INVALID, "string_lookup: %s",
                             tutti_error_message());
    tutti_sym y = TUTTI_NARY(
        &tutti_op_string_lookup, ((tutti_sym[]){x}), TUTTI_TENSOR_ATTR("words", words),
        TUTTI_INTS("ids", tutti_tensor_count(words), ids), TUTTI_INT("unknown", o.unknown));
    tutti_tensor_release(words);
    free(ids);
    return y;
}

static const tutti_attr_spec attrs[] = {
    {"words", TUTTI_ATTR_TENSOR, NULL},
    {"ids", TUTTI_ATTR_INTS, NULL},
    {"unknown", TUTTI_ATTR_INT, "0"},
    {NULL},
};
static const char *const samples[] = {
    "string[3]{=red,green,red} | words=string[2]{=blue,red} ids=[5,3]",
    "string[2,3]{=b,a,d,c,a,b} | words=string[3]{=a,b,c} ids=[1,2,3] unknown=-1",
    "string[]{=a} | words=string[1]{=a} ids=[9]",
    "string[0] | words=string[1]{=a} ids=[9]",
    NULL,
};

const tutti_op tutti_op_string_lookup = {
    .struct_size = sizeof(tutti_op),
    .name = "string_lookup",
    .version = 1,
    .doc = "string_lookup(x; words, ids, unknown): y = ids[i] if x = words[i], else unknown",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_OP_NO_GRADIENT | TUTTI_OP_HOST,
    .attrs = attrs,
    .infer = string_lookup_infer,
    .cost = tutti__cost_move,
    .split = string_lookup_split,
    .reference = string_lookup_reference,
    .samples = samples,
};
