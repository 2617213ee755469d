/* string_strip.c: without white space at both ends. */
#include "ops/text/strings.h"

static tutti_string strip(const tutti_kernel_call *call, tutti_string from)
{
    TUTTI_UNUSED(call);
    while (from.size > 0 && tutti__is_space(from.data[from.size - 1]))
        from.size--;
    while (from.size > 0 && tutti__is_space(from.data[0]))
        from.data++, from.size--;
    return from;
}

static tutti_status string_strip_reference(const tutti_kernel_call *call)
{
    return tutti__cut_strings(call, strip);
}

extern const tutti_op tutti_op_string_strip;
tutti_sym(tutti_string_strip)(tutti_sym x)
{
    return tutti__unary(&tutti_op_string_strip, x);
}

static const char *const samples[] = {
    "string[3]{=a,bc,d}",
    "string[]{=abc}",
    "string[0,2]",
    NULL,
};

const tutti_op tutti_op_string_strip = {
    .struct_size = sizeof(tutti_op),
    .name = "string_strip",
    .version = 1,
    .doc = "string_strip(x): y = x without white space at both ends",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS,
    .infer = tutti__infer_strings,
    .cost = tutti__cost_move,
    .split = tutti__split_strings,
    .reference = string_strip_reference,
    .samples = samples,
};
