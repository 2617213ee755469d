/* string_regex_replace.c: what matches a regular expression, replaced. */
#include <limits.h>
#include <stdlib.h>

#include "ops/text/regex.h"

enum { GROUPS = 10 };

static tutti_status string_regex_replace_infer(tutti_infer *node)
{
    regex_t regex;
    TUTTI_TRY(
        tutti__regex_compile(node->op->name, node->name, RULE_STRING(node, "pattern"), &regex));
    size_t groups = regex.re_nsub;
    regfree(&regex);
    const char *to = RULE_STRING(node, "replacement");
    for (; (to = strchr(to, '\\')) != NULL; to += 2)
        if (to[1] != '\\' && (to[1] < '0' || to[1] > '9' || (size_t)(to[1] - '0') > groups))
            return RULE_FAIL(node, TUTTI_INVALID,
                             "the replacement has \\%c, knows \\\\ and \\0 to \\%zu, what the "
                             "groups matched",
                             to[1] ? to[1] : ' ', groups < 9 ? groups : 9);
    return tutti__infer_strings(node);
}

/* The replacement, with what the groups matched in the place of \0 to \9. */
static void string_regex_replace_put(const char *replacement, const char *text,
                                     const regmatch_t *groups, tutti_text *to)
{
    for (const char *at = replacement; *at; at++) {
        if (*at != '\\') {
            tutti__text_bytes(to, at, 1);
            continue;
        }
        at++;
        if (*at == '\\')
            tutti__text_bytes(to, at, 1);
        else if (groups[*at - '0'].rm_so >= 0)
            tutti__text_bytes(to, text + groups[*at - '0'].rm_so,
                              (size_t)(groups[*at - '0'].rm_eo - groups[*at - '0'].rm_so));
    }
}

/* An empty match takes one byte along, so that the search gets on. */
static void replace(const tutti_kernel_call *call, const regex_t *regex, const char *text,
                    size_t size, tutti_text *to)
{
    const char *replacement = RULE_STRING(call, "replacement");
    bool once = RULE_INT(call, "once") != 0;
    regmatch_t groups[GROUPS];
    size_t at = 0;
    while (at <= size && tutti__regex_find(regex, text, size, at, GROUPS, groups)) {
        size_t from = (size_t)groups[0].rm_so, end = (size_t)groups[0].rm_eo;
        tutti__text_bytes(to, text + at, from - at);
        string_regex_replace_put(replacement, text, groups, to);
        if (end == from && end < size)
            tutti__text_bytes(to, text + end, 1);
        at = end == from ? end + 1 : end;
        if (once)
            break;
    }
    if (at < size)
        tutti__text_bytes(to, text + at, size - at);
}

typedef struct job {
    const tutti_kernel_call *call;
    regex_t regex;
    tutti_text text, all; /* one string with a 0 behind it; the results one behind the other */
    tutti_string *to;
} job;

static tutti_status replace_all(job *j)
{
    const tutti_view *x = &j->call->inputs[0];
    const tutti_string *from = x->data;
    int64_t count = tutti_view_count(x);
    for (int64_t i = 0; i < count; i++) {
        size_t before = j->all.size;
        if (from[i].size > INT_MAX - 1)
            return RULE_FAIL(j->call, TUTTI_TOO_LARGE, "element %lld has more than 2 GB",
                             (long long)i);
        j->text.size = 0;
        tutti__text_bytes(&j->text, from[i].data, (size_t)from[i].size);
        tutti__text_bytes(&j->text, "", 1);
        if (!j->text.failed)
            replace(j->call, &j->regex, j->text.data, (size_t)from[i].size, &j->all);
        j->to[i].size = (int64_t)(j->all.size - before);
    }
    if (j->all.failed || j->text.failed)
        return RULE_FAIL(j->call, TUTTI_NO_MEMORY, "no memory for %lld strings", (long long)count);
    size_t at = 0; /* where nothing was written there is no text */
    for (int64_t i = 0; i < count; at += (size_t)j->to[i].size, i++)
        j->to[i].data = j->to[i].size > 0 ? j->all.data + at : NULL;
    return tutti__give_strings(j->call, 0, x->rank, x->dims, j->to);
}

static tutti_status string_regex_replace_reference(const tutti_kernel_call *call)
{
    job j = {.call = call};
    int64_t count = tutti_view_count(&call->inputs[0]);
    TUTTI_TRY(
        tutti__regex_compile(call->op->name, call->name, RULE_STRING(call, "pattern"), &j.regex));
    j.to = malloc((size_t)(count + 1) * sizeof *j.to);
    tutti_status status =
        j.to ? replace_all(&j)
             : RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld strings", (long long)count);
    tutti__text_free(&j.text);
    tutti__text_free(&j.all);
    free(j.to);
    regfree(&j.regex);
    return status;
}

extern const tutti_op tutti_op_string_regex_replace;
tutti_sym(tutti_string_regex_replace)(tutti_sym x, const char *pattern, const char *replacement,
                                      bool once)
{
    return TUTTI_NARY(&tutti_op_string_regex_replace, ((tutti_sym[]){x}),
                      TUTTI_STR("pattern", pattern), TUTTI_STR("replacement", replacement),
                      TUTTI_INT("once", once));
}

static const tutti_attr_spec attrs[] = {
    {"pattern", TUTTI_ATTR_STRING, NULL},
    {"replacement", TUTTI_ATTR_STRING, ""},
    {"once", TUTTI_ATTR_INT, "false"},
    {NULL},
};

static const char *const samples[] = {
    "string[3]{=abcab,bb,x} | pattern=b replacement=yz",
    "string[2,2]{=aab,ba,x1,d} | pattern=a+ once=true",
    "string[0] | pattern=x",
    NULL,
};

const tutti_op tutti_op_string_regex_replace = {
    .struct_size = sizeof(tutti_op),
    .name = "string_regex_replace",
    .version = 1,
    .doc =
        "string_regex_replace(x; pattern, replacement, once): y = x with what matches the extended regular expression of POSIX replaced",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS,
    .attrs = attrs,
    .infer = string_regex_replace_infer,
    .cost = tutti__cost_move,
    .split = tutti__split_strings,
    .reference = string_regex_replace_reference,
    .samples = samples,
};
