/* string_substring.c: part of each string, counted in bytes or characters of UTF-8. */
#include "ops/text/strings.h"

static tutti_status string_substring_infer(tutti_infer *node)
{
    if (RULE_INT(node, "length") < 0)
        return RULE_FAIL(node, TUTTI_INVALID, "length is %lld, needs 0 or more",
                         (long long)RULE_INT(node, "length"));
    return tutti__infer_strings(node);
}

/* The byte at which unit `index` begins; the end when there are not so many. */
static int64_t byte_of(tutti_string x, int64_t index, bool characters)
{
    if (!characters)
        return index < x.size ? index : x.size;
    int64_t at = 0;
    for (; at < x.size; at++)
        if (tutti__begins_character(x.data[at]) && index-- == 0)
            break;
    return at;
}

static int64_t units_of(tutti_string x, bool characters)
{
    int64_t units = x.size;
    for (int64_t i = 0; characters && i < x.size; i++)
        units -= !tutti__begins_character(x.data[i]);
    return units;
}

static tutti_string part(const tutti_kernel_call *call, tutti_string x)
{
    bool characters = RULE_INT(call, "characters") != 0;
    int64_t start = RULE_INT(call, "start"), length = RULE_INT(call, "length");
    int64_t units = units_of(x, characters);
    if (start < 0)
        start = start < -units ? 0 : start + units;
    if (start > units)
        start = units;
    int64_t end = length > units - start ? units : start + length;
    int64_t from = byte_of(x, start, characters), to = byte_of(x, end, characters);
    return (tutti_string){x.data ? x.data + from : x.data, to - from};
}

static tutti_status string_substring_reference(const tutti_kernel_call *call)
{
    return tutti__cut_strings(call, part);
}

extern const tutti_op tutti_op_string_substring;
tutti_sym(tutti_string_substring)(tutti_sym x, int64_t start, int64_t length, bool characters)
{
    return TUTTI_NARY(&tutti_op_string_substring, ((tutti_sym[]){x}), TUTTI_INT("start", start),
                      TUTTI_INT("length", length), TUTTI_INT("characters", characters));
}

static const tutti_attr_spec attrs[] = {
    {"start", TUTTI_ATTR_INT, NULL},
    {"length", TUTTI_ATTR_INT, NULL},
    {"characters", TUTTI_ATTR_INT, "false"},
    {NULL},
};

static const char *const samples[] = {
    "string[3]{=abcd,bcd,ef} | start=1 length=2",
    "string[2,2]{=a,b,ccc,dd} | start=-2 length=9 characters=true",
    "string[0] | start=0 length=0",
    NULL,
};

const tutti_op tutti_op_string_substring = {
    .struct_size = sizeof(tutti_op),
    .name = "string_substring",
    .version = 1,
    .doc =
        "string_substring(x; start, length, characters): y = `length` bytes or characters of x from `start` on, from the end when negative",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS,
    .attrs = attrs,
    .infer = string_substring_infer,
    .cost = tutti__cost_move,
    .split = tutti__split_strings,
    .reference = string_substring_reference,
    .samples = samples,
};
