/* string_upper.c: a to z as A to Z; all other bytes stay. */
#include "ops/text/strings.h"

static void upper(const tutti_kernel_call *call, tutti_string from, tutti_text *to)
{
    TUTTI_UNUSED(call);
    tutti__change_case(from, 'a', 'A', to);
}

static tutti_status string_upper_reference(const tutti_kernel_call *call)
{
    return tutti__map_strings(call, upper);
}

extern const tutti_op tutti_op_string_upper;
tutti_sym(tutti_string_upper)(tutti_sym x)
{
    return tutti__unary(&tutti_op_string_upper, x);
}

static const char *const samples[] = {
    "string[2,2]{=Red,GREEN,b1Z,x}",
    "string[]{=abc}",
    "string[0]",
    NULL,
};

const tutti_op tutti_op_string_upper = {
    .struct_size = sizeof(tutti_op),
    .name = "string_upper",
    .version = 1,
    .doc = "string_upper(x): y = x with a to z as A to Z",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS,
    .infer = tutti__infer_strings,
    .cost = tutti__cost_move,
    .split = tutti__split_strings,
    .reference = string_upper_reference,
    .samples = samples,
};
