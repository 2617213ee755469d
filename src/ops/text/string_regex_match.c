/* string_regex_match.c: whether a regular expression matches the whole of each string. */
#include <limits.h>

#include "ops/text/regex.h"

static tutti_status string_regex_match_infer(tutti_infer *node)
{
    regex_t regex;
    TUTTI_TRY(
        tutti__regex_compile(node->op->name, node->name, RULE_STRING(node, "pattern"), &regex));
    regfree(&regex);
    return tutti__infer_of_strings(node, TUTTI_BOOL);
}

/* POSIX finds the longest of the matches that begin first, so one that begins at 0 and covers all
 * is found if there is one. */
static tutti_status string_regex_match_reference(const tutti_kernel_call *call)
{
    const tutti_string *x = call->inputs[0].data;
    int64_t count = tutti_view_count(&call->inputs[0]);
    tutti_text text = {0};
    regex_t regex;
    TUTTI_TRY(
        tutti__regex_compile(call->op->name, call->name, RULE_STRING(call, "pattern"), &regex));
    for (int64_t i = 0; i < count && !text.failed; i++) {
        regmatch_t match;
        text.size = 0;
        tutti__text_bytes(&text, x[i].data, (size_t)x[i].size);
        tutti__text_bytes(&text, "", 1);
        bool whole = !text.failed && x[i].size < INT_MAX &&
                     tutti__regex_find(&regex, text.data, (size_t)x[i].size, 0, 1, &match) &&
                     match.rm_so == 0 && match.rm_eo == x[i].size;
        tutti_view_set_int(&call->outputs[0], i, whole);
    }
    bool failed = text.failed;
    tutti__text_free(&text);
    regfree(&regex);
    return failed ? RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for a string") : TUTTI_OK;
}

extern const tutti_op tutti_op_string_regex_match;
tutti_sym(tutti_string_regex_match)(tutti_sym x, const char *pattern)
{
    return TUTTI_NARY(&tutti_op_string_regex_match, ((tutti_sym[]){x}),
                      TUTTI_STR("pattern", pattern));
}

static const tutti_attr_spec attrs[] = {
    {"pattern", TUTTI_ATTR_STRING, NULL},
    {NULL},
};

static const char *const samples[] = {
    "string[3]{=abcab,bb,x} | pattern=b*",
    "string[2,2]{=aab,ba,x1,d} | pattern=a+b",
    "string[0] | pattern=x",
    NULL,
};

const tutti_op tutti_op_string_regex_match = {
    .struct_size = sizeof(tutti_op),
    .name = "string_regex_match",
    .version = 1,
    .doc =
        "string_regex_match(x; pattern): y = whether the extended regular expression of POSIX matches all of x",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS,
    .attrs = attrs,
    .infer = string_regex_match_infer,
    .cost = tutti__cost_move,
    .split = tutti__split_strings,
    .reference = string_regex_match_reference,
    .samples = samples,
};
