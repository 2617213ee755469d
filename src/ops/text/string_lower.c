/* string_lower.c: A to Z as a to z; all other bytes stay. */
#include "ops/text/strings.h"

static void lower(const tutti_kernel_call *call, tutti_string from, tutti_text *to)
{
    TUTTI_UNUSED(call);
    tutti__change_case(from, 'A', 'a', to);
}

static tutti_status string_lower_reference(const tutti_kernel_call *call)
{
    return tutti__map_strings(call, lower);
}

extern const tutti_op tutti_op_string_lower;
tutti_sym(tutti_string_lower)(tutti_sym x)
{
    return tutti__unary(&tutti_op_string_lower, x);
}

static const char *const samples[] = {
    "string[2,2]{=Red,GREEN,b1Z,x}",
    "string[]{=ABC}",
    "string[0]",
    NULL,
};

const tutti_op tutti_op_string_lower = {
    .struct_size = sizeof(tutti_op),
    .name = "string_lower",
    .version = 1,
    .doc = "string_lower(x): y = x with A to Z as a to z",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS,
    .infer = tutti__infer_strings,
    .cost = tutti__cost_move,
    .split = tutti__split_strings,
    .reference = string_lower_reference,
    .samples = samples,
};
