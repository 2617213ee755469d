/* string_join.c: strings one behind the other, element by element. */
#include <stdlib.h>

#include "ops/strided.h"
#include "ops/text/strings.h"

static tutti_status string_join_infer(tutti_infer *node)
{
    return tutti__infer_many_strings(node, TUTTI_STRING);
}

static void string_join_join(const tutti_kernel_call *call, const tutti_strided *walk,
                             tutti_string separator, tutti_text *to)
{
    for (int k = 0; k < call->input_count; k++) {
        const tutti_string *x = (const tutti_string *)call->inputs[k].data + walk->at[k];
        if (k > 0)
            tutti__text_bytes(to, separator.data, (size_t)separator.size);
        tutti__text_bytes(to, x->data, (size_t)x->size);
    }
}

static tutti_status join_all(const tutti_kernel_call *call, tutti_text *all, tutti_string *to)
{
    const tutti_view *y = &call->outputs[0];
    const char *between = RULE_STRING(call, "separator");
    tutti_string separator = {between, (int64_t)strlen(between)};
    int64_t count = tutti_view_count(y);
    tutti_strided walk;
    tutti__strided_start(call, &walk);
    for (int64_t i = 0; i < count; i++, tutti__strided_next(&walk)) {
        size_t before = all->size;
        string_join_join(call, &walk, separator, all);
        to[i].size = (int64_t)(all->size - before);
    }
    if (all->failed)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld strings", (long long)count);
    const char *at = all->data;
    for (int64_t i = 0; i < count; at += to[i].size, i++)
        to[i].data = at;
    return tutti__give_strings(call, 0, y->rank, y->dims, to);
}

static tutti_status string_join_reference(const tutti_kernel_call *call)
{
    int64_t count = tutti_view_count(&call->outputs[0]);
    tutti_string *to = malloc((size_t)(count + 1) * sizeof *to);
    tutti_text all = {0};
    if (!to)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld strings", (long long)count);
    tutti_status status = join_all(call, &all, to);
    tutti__text_free(&all);
    free(to);
    return status;
}

extern const tutti_op tutti_op_string_join;
tutti_sym(tutti_string_join)(const char *separator, int count, const tutti_sym *xs)
{
    return tutti__nary(&tutti_op_string_join, count, xs, 1,
                       &TUTTI_STR("separator", separator ? separator : ""));
}

static const tutti_attr_spec attrs[] = {
    {"separator", TUTTI_ATTR_STRING, ""},
    {NULL},
};

static const char *const samples[] = {
    "string[3]{=a,b,c} string[3]{=x,yy,z}",
    "string[2,2]{=a,b,a,d} string[]{=z} string[2]{=p,q} | separator=-",
    "string[0] string[1]{=a}",
    "string[1]{=a}",
    NULL,
};

const tutti_op tutti_op_string_join = {
    .struct_size = sizeof(tutti_op),
    .name = "string_join",
    .version = 1,
    .doc =
        "string_join(xs...; separator): y = the xs, element by element, with the separator between them",
    .category = "text",
    .min_inputs = 1,
    .max_inputs = TUTTI_SPLIT_SLOTS,
    .outputs = 1,
    .flags = TUTTI_TEXT_FLAGS,
    .attrs = attrs,
    .infer = string_join_infer,
    .cost = tutti__cost_move,
    .split = tutti_split_elementwise,
    .reference = string_join_reference,
    .samples = samples,
};
