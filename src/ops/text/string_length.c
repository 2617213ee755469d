/* string_length.c: how long each string is, in bytes or characters of UTF-8. */
#include "ops/text/strings.h"

static tutti_status string_length_infer(tutti_infer *node)
{
    return tutti__infer_of_strings(node, TUTTI_I64);
}

static tutti_status string_length_reference(const tutti_kernel_call *call)
{
    const tutti_string *x = call->inputs[0].data;
    int64_t *y = call->outputs[0].data, count = tutti_view_count(&call->inputs[0]);
    bool characters = RULE_INT(call, "characters") != 0;
    for (int64_t i = 0; i < count; i++) {
        y[i] = x[i].size;
        for (int64_t k = 0; characters && k < x[i].size; k++)
            y[i] -= !tutti__begins_character(x[i].data[k]);
    }
    return TUTTI_OK;
}

extern const tutti_op tutti_op_string_length;
tutti_sym(tutti_string_length)(tutti_sym x, bool characters)
{
    return TUTTI_NARY(&tutti_op_string_length, ((tutti_sym[]){x}),
                      TUTTI_INT("characters", characters));
}

static const tutti_attr_spec attrs[] = {
    {"characters", TUTTI_ATTR_INT, "false"},
    {NULL},
};

static const char *const samples[] = {
    "string[3]{=a,bcd,ef}",
    "string[2,2]{=a,b,ccc,dd} | characters=true",
    "string[0]",
    NULL,
};

const tutti_op tutti_op_string_length = {
    .struct_size = sizeof(tutti_op),
    .name = "string_length",
    .version = 1,
    .doc = "string_length(x; characters): y = number of bytes, or of characters of UTF-8, of x",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS,
    .attrs = attrs,
    .infer = string_length_infer,
    .cost = tutti__cost_move,
    .split = tutti__split_strings,
    .reference = string_length_reference,
    .samples = samples,
};
