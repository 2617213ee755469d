/* string_find.c: all matches of a regular expression in each string, as a dense tensor. */
#include <limits.h>
#include <stdlib.h>

#include "base/container.h"
#include "ops/text/regex.h"

static tutti_status string_find_infer(tutti_infer *node)
{
    regex_t regex;
    const tutti_type *x = &node->inputs[0];
    int64_t dims[TUTTI_MAX_RANK + 1];
    TUTTI_TRY(tutti__need_strings(node, 0));
    TUTTI_TRY(
        tutti__regex_compile(node->op->name, node->name, RULE_STRING(node, "pattern"), &regex));
    regfree(&regex);
    memcpy(dims, x->dims, sizeof x->dims);
    dims[x->rank] = TUTTI_ANY;
    return tutti__shape_output(node, 0, TUTTI_STRING, x->rank + 1, dims);
}

typedef TUTTI_VEC(tutti_string) matches;

/* Matches of x, which point into it; *ret_count grows by their number. */
static bool string_find_find(const tutti_kernel_call *call, const regex_t *regex, tutti_string x,
                             tutti_text *text, matches *all)
{
    size_t size = (size_t)x.size, at = 0;
    regmatch_t match;
    text->size = 0;
    tutti__text_bytes(text, x.size > 0 ? x.data : "", size);
    tutti__text_bytes(text, "", 1);
    if (text->failed || x.size >= INT_MAX)
        return false;
    while (at < size && tutti__regex_find(regex, text->data, size, at, 1, &match)) {
        int64_t length = match.rm_eo - match.rm_so;
        tutti_string part = {x.data + match.rm_so, length};
        if (length > 0 && length >= RULE_INT(call, "least") && !TUTTI_VEC_PUSH(all, part))
            return false;
        at = (size_t)match.rm_eo + (length == 0);
    }
    return true;
}

/* Rows of `most` parts, filled up. */
static tutti_status give(const tutti_kernel_call *call, const matches *all, const int64_t *ends,
                         int64_t most)
{
    const tutti_view *x = &call->inputs[0];
    const char *filler = RULE_STRING(call, "filler");
    int64_t count = tutti_view_count(x), whole, dims[TUTTI_MAX_RANK];
    if (!tutti__mul_size(count, most, &whole) || whole > INT64_MAX / 32)
        return RULE_FAIL(call, TUTTI_TOO_LARGE, "%lld strings of %lld parts are too many",
                         (long long)count, (long long)most);
    tutti_string *rows = malloc((size_t)(whole + 1) * sizeof *rows);
    if (!rows)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld strings", (long long)whole);
    for (int64_t i = 0; i < count; i++) {
        int64_t first = i > 0 ? ends[i - 1] : 0;
        for (int64_t k = 0; k < most; k++)
            rows[i * most + k] = first + k < ends[i]
                                     ? all->data[first + k]
                                     : (tutti_string){filler, (int64_t)strlen(filler)};
    }
    if (x->rank > 0)
        memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    dims[x->rank] = most;
    tutti_status status = tutti__give_strings(call, 0, x->rank + 1, dims, rows);
    free(rows);
    return status;
}

static tutti_status string_find_reference(const tutti_kernel_call *call)
{
    const tutti_string *x = call->inputs[0].data;
    int64_t count = tutti_view_count(&call->inputs[0]), most = 0;
    int64_t *ends = calloc((size_t)count + 1, sizeof *ends);
    tutti_text text = {0};
    matches all = {0};
    regex_t regex;
    tutti_status status =
        tutti__regex_compile(call->op->name, call->name, RULE_STRING(call, "pattern"), &regex);
    bool compiled = status == TUTTI_OK;
    for (int64_t i = 0; ends && status == TUTTI_OK && i < count; i++) {
        int64_t before = (int64_t)all.count;
        if (!string_find_find(call, &regex, x[i], &text, &all))
            status = RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for the parts of a string");
        ends[i] = (int64_t)all.count;
        most = ends[i] - before > most ? ends[i] - before : most;
    }
    if (status == TUTTI_OK)
        status = ends ? give(call, &all, ends, most)
                      : RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for the parts of a string");
    if (compiled)
        regfree(&regex);
    tutti__text_free(&text);
    TUTTI_VEC_FREE(&all);
    free(ends);
    return status;
}

extern const tutti_op tutti_op_string_find;
tutti_sym(tutti_string_find)(tutti_sym x, const char *pattern, const char *filler, int64_t least)
{
    return TUTTI_NARY(&tutti_op_string_find, ((tutti_sym[]){x}), TUTTI_STR("pattern", pattern),
                      TUTTI_STR("filler", filler ? filler : ""), TUTTI_INT("least", least));
}

static const tutti_attr_spec attrs[] = {
    {"pattern", TUTTI_ATTR_STRING, NULL},
    {"filler", TUTTI_ATTR_STRING, ""},
    {"least", TUTTI_ATTR_INT, "0"},
    {NULL},
};

static const char *const samples[] = {
    "string[2]{=ab.c,dxe} | pattern=[a-d]+ filler=x",
    "string[2,2]{=a-bb,c,dd-e,x} | pattern=[a-e]+ least=2",
    "string[]{=abc} | pattern=z",
    "string[0] | pattern=z",
    NULL,
};

const tutti_op tutti_op_string_find = {
    .struct_size = sizeof(tutti_op),
    .name = "string_find",
    .version = 1,
    .doc =
        "string_find(x; pattern, filler, least): all matches of the extended regular expression of POSIX in x, of at least that many bytes, filled up",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS | TUTTI_OP_DYNAMIC,
    .attrs = attrs,
    .infer = string_find_infer,
    .cost = tutti__cost_move,
    .reference = string_find_reference,
    .samples = samples,
};
