/* string_split.c: the parts of each string between separators, as a dense tensor that is filled up
 * with empty strings, and how many each has. */
#include <stdlib.h>

#include "ops/text/strings.h"

/* x [..] -> parts string [.., most], counts i64 [..] */
static tutti_status string_split_infer(tutti_infer *node)
{
    const tutti_type *x = &node->inputs[0];
    int64_t dims[TUTTI_MAX_RANK + 1];
    TUTTI_TRY(tutti__need_strings(node, 0));
    if (RULE_INT(node, "limit") < 0)
        return RULE_FAIL(node, TUTTI_INVALID, "limit is %lld, needs 1 or more, or 0 for none",
                         (long long)RULE_INT(node, "limit"));
    memcpy(dims, x->dims, sizeof x->dims);
    dims[x->rank] = TUTTI_ANY;
    TUTTI_TRY(tutti__shape_output(node, 0, TUTTI_STRING, x->rank + 1, dims));
    return tutti__shape_output(node, 1, TUTTI_I64, x->rank, x->dims);
}

typedef struct parts {
    const char *at, *end;
    const char *separator; /* empty: runs of white space, and none at the ends */
    size_t size;
    int64_t left; /* cuts that may still be made */
    bool done;
} parts;

static const char *string_split_find(const char *at, const char *end, const char *what, size_t size)
{
    for (; (size_t)(end - at) >= size; at++)
        if (memcmp(at, what, size) == 0)
            return at;
    return NULL;
}

static bool next_word(parts *p, tutti_string *ret)
{
    while (p->at < p->end && tutti__is_space(*p->at))
        p->at++;
    const char *from = p->at;
    if (from == p->end)
        return false;
    while (p->at < p->end && (p->left == 0 || !tutti__is_space(*p->at)))
        p->at++;
    p->left -= p->left > 0;
    *ret = (tutti_string){from, p->at - from};
    return true;
}

static bool next_part(parts *p, tutti_string *ret)
{
    if (p->size == 0)
        return next_word(p, ret);
    if (p->done)
        return false;
    const char *cut = p->left > 0 ? string_split_find(p->at, p->end, p->separator, p->size) : NULL;
    *ret = (tutti_string){p->at, (cut ? cut : p->end) - p->at};
    p->at = cut ? cut + p->size : p->end;
    p->left -= p->left > 0;
    p->done = cut == NULL;
    return true;
}

static parts parts_of(const tutti_kernel_call *call, tutti_string x)
{
    const char *separator = RULE_STRING(call, "separator"), *data = x.size > 0 ? x.data : "";
    int64_t limit = RULE_INT(call, "limit");
    return (parts){.at = data,
                   .end = data + x.size,
                   .separator = separator,
                   .size = strlen(separator),
                   .left = limit > 0 ? limit : INT64_MAX};
}

/* rows [count, most] */
static void string_split_fill(const tutti_kernel_call *call, int64_t most, tutti_string *rows)
{
    const tutti_string *x = call->inputs[0].data;
    int64_t count = tutti_view_count(&call->inputs[0]);
    for (int64_t i = 0; i < count; i++) {
        parts p = parts_of(call, x[i]);
        for (int64_t k = 0; k < most; k++)
            if (!next_part(&p, &rows[i * most + k]))
                rows[i * most + k] = (tutti_string){"", 0};
    }
}

static tutti_status string_split_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0];
    int64_t *counts = call->outputs[1].data, count = tutti_view_count(x), most = 0, all;
    int64_t dims[TUTTI_MAX_RANK];
    tutti_string part;
    for (int64_t i = 0; i < count; i++) {
        parts p = parts_of(call, ((const tutti_string *)x->data)[i]);
        for (counts[i] = 0; next_part(&p, &part);)
            counts[i]++;
        most = counts[i] > most ? counts[i] : most;
    }
    if (!tutti__mul_size(count, most, &all) || all > INT64_MAX / 32)
        return RULE_FAIL(call, TUTTI_TOO_LARGE, "%lld strings of %lld parts are too many",
                         (long long)count, (long long)most);
    tutti_string *rows = malloc((size_t)(all + 1) * sizeof *rows);
    if (!rows)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld strings", (long long)all);
    string_split_fill(call, most, rows);
    if (x->rank > 0)
        memcpy(dims, x->dims, (size_t)x->rank * sizeof *dims);
    dims[x->rank] = most;
    tutti_status status = tutti__give_strings(call, 0, x->rank + 1, dims, rows);
    free(rows);
    return status;
}

extern const tutti_op tutti_op_string_split;
tutti_sym(tutti_string_split)(tutti_sym x, const char *separator, int64_t limit)
{
    return TUTTI_NARY(&tutti_op_string_split, ((tutti_sym[]){x}),
                      TUTTI_STR("separator", separator ? separator : ""),
                      TUTTI_INT("limit", limit));
}

static const tutti_attr_spec attrs[] = {
    {"separator", TUTTI_ATTR_STRING, ""},
    {"limit", TUTTI_ATTR_INT, "0"}, /* cuts at most; 0: all */
    {NULL},
};

static const char *const samples[] = {
    "string[3]{=a-b,b,c-d-e} | separator=-",
    "string[2,2]{=a,bxc,axx,d} | separator=x limit=1",
    "string[]{=abc}",
    "string[0]",
    NULL,
};

const tutti_op tutti_op_string_split = {
    .struct_size = sizeof(tutti_op),
    .name = "string_split",
    .version = 1,
    .doc =
        "string_split(x; separator, limit): (parts, counts): the parts of x between separators, filled up with empty ones, and their number",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = 1,
    .outputs = 2,
    .flags = TUTTI_TEXT_FLAGS | TUTTI_OP_DYNAMIC,
    .attrs = attrs,
    .infer = string_split_infer,
    .cost = tutti__cost_move,
    .reference = string_split_reference,
    .samples = samples,
};
