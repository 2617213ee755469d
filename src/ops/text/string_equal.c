/* string_equal.c: whether strings are the same, byte for byte. */
#include "ops/strided.h"
#include "ops/text/strings.h"

static tutti_status string_equal_infer(tutti_infer *node)
{
    return tutti__infer_many_strings(node, TUTTI_BOOL);
}

static tutti_status string_equal_reference(const tutti_kernel_call *call)
{
    const tutti_string *a = call->inputs[0].data, *b = call->inputs[1].data;
    int64_t count = tutti_view_count(&call->outputs[0]);
    tutti_strided walk;
    tutti__strided_start(call, &walk);
    for (int64_t i = 0; i < count; i++, tutti__strided_next(&walk)) {
        const tutti_string *l = &a[walk.at[0]], *r = &b[walk.at[1]];
        bool same =
            l->size == r->size && (l->size == 0 || memcmp(l->data, r->data, (size_t)l->size) == 0);
        tutti_view_set_int(&call->outputs[0], i, same);
    }
    return TUTTI_OK;
}

extern const tutti_op tutti_op_string_equal;
tutti_sym(tutti_string_equal)(tutti_sym a, tutti_sym b)
{
    return tutti__binary(&tutti_op_string_equal, a, b);
}

static const char *const samples[] = {
    "string[3]{=a,b,c} string[3]{=a,c,c}",
    "string[2,2]{=a,b,a,d} string[]{=a}",
    "string[2,1]{=a,b} string[3]{=b,b,a}",
    "string[0] string[1]{=a}",
    NULL,
};

const tutti_op tutti_op_string_equal = {
    .struct_size = sizeof(tutti_op),
    .name = "string_equal",
    .version = 1,
    .doc = "string_equal(a, b): y = whether a and b are the same bytes",
    .category = "text",
    .min_inputs = 2,
    .max_inputs = 2,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS,
    .infer = string_equal_infer,
    .cost = tutti__cost_elementwise,
    .split = tutti_split_elementwise,
    .reference = string_equal_reference,
    .samples = samples,
};
