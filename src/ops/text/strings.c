/* strings.c: what the operators on strings share; see strings.h. */
#include "ops/text/strings.h"

#include <stdlib.h>

#include "ops/call.h"

tutti_status tutti__need_strings(const tutti_infer *node, int i)
{
    char text[TUTTI_TYPE_TEXT];
    if (node->inputs[i].dtype != TUTTI_STRING)
        return RULE_FAIL(node, TUTTI_INVALID, "input %d is %s, needs strings", i,
                         tutti_type_text(&node->inputs[i], text));
    return TUTTI_OK;
}

tutti_status tutti__infer_of_strings(tutti_infer *node, tutti_dtype dtype)
{
    TUTTI_TRY(tutti__need_strings(node, 0));
    return tutti__shape_output(node, 0, dtype, node->inputs[0].rank, node->inputs[0].dims);
}

tutti_status tutti__infer_strings(tutti_infer *node)
{
    return tutti__infer_of_strings(node, TUTTI_STRING);
}

tutti_status tutti__infer_many_strings(tutti_infer *node, tutti_dtype dtype)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    tutti_type y = node->inputs[0];
    for (int i = 0; i < node->input_count; i++) {
        const tutti_type *x = &node->inputs[i];
        int64_t dims[TUTTI_MAX_RANK];
        int rank;
        TUTTI_TRY(tutti__need_strings(node, i));
        if (tutti_broadcast_dims(y.rank, y.dims, x->rank, x->dims, &rank, dims) != TUTTI_OK)
            return RULE_FAIL(node, TUTTI_INVALID,
                             "input %d is %s, which does not broadcast with %s", i,
                             tutti_type_text(x, a), tutti_type_text(&y, b));
        y = tutti_type_make(TUTTI_STRING, rank, dims);
    }
    return tutti__shape_output(node, 0, dtype, y.rank, y.dims);
}

tutti_status tutti__give_strings(const tutti_kernel_call *call, int index, int rank,
                                 const int64_t *dims, const tutti_string *strings)
{
    const tutti_call_host *host = call->context;
    tutti_tensor *tensor;
    if (!host || !host->give)
        return RULE_FAIL(call, TUTTI_UNSUPPORTED, "this device makes no strings");
    TUTTI_TRY(tutti_tensor_from(TUTTI_STRING, rank, dims, strings, &tensor));
    tutti_status status = host->give(call, index, tensor);
    tutti_tensor_release(tensor);
    return status;
}

tutti_status tutti__cut_strings(const tutti_kernel_call *call,
                                tutti_string (*cut)(const tutti_kernel_call *call,
                                                    tutti_string from))
{
    const tutti_view *x = &call->inputs[0];
    const tutti_string *from = x->data;
    int64_t count = tutti_view_count(x);
    tutti_string *to = malloc((size_t)(count + 1) * sizeof *to);
    if (!to)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld strings", (long long)count);
    for (int64_t i = 0; i < count; i++)
        to[i] = cut(call, from[i]);
    tutti_status status = tutti__give_strings(call, 0, x->rank, x->dims, to);
    free(to);
    return status;
}

/* The texts stand one behind the other in one; sizes first, because it moves as it grows. */
static tutti_status map_all(const tutti_kernel_call *call, tutti_text *all, tutti_string *to,
                            void (*map)(const tutti_kernel_call *call, tutti_string from,
                                        tutti_text *to))
{
    const tutti_view *x = &call->inputs[0];
    const tutti_string *from = x->data;
    int64_t count = tutti_view_count(x);
    for (int64_t i = 0; i < count; i++) {
        size_t before = all->size;
        map(call, from[i], all);
        to[i].size = (int64_t)(all->size - before);
    }
    if (all->failed)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld strings", (long long)count);
    const char *at = all->data;
    for (int64_t i = 0; i < count; at += to[i].size, i++)
        to[i].data = at;
    return tutti__give_strings(call, 0, x->rank, x->dims, to);
}

tutti_status tutti__map_strings(const tutti_kernel_call *call,
                                void (*map)(const tutti_kernel_call *call, tutti_string from,
                                            tutti_text *to))
{
    int64_t count = tutti_view_count(&call->inputs[0]);
    tutti_string *to = malloc((size_t)(count + 1) * sizeof *to);
    tutti_text all = {0};
    tutti_status status = TUTTI_OK;
    if (!to)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for %lld strings", (long long)count);
    status = map_all(call, &all, to, map);
    tutti__text_free(&all);
    free(to);
    return status;
}

int tutti__split_strings(const tutti_infer *node, int capacity, tutti_split *ret)
{
    return tutti__split_other_axes(node, -1, capacity, ret);
}

void tutti__change_case(tutti_string from, char first, char to_first, tutti_text *to)
{
    size_t at = to->size;
    tutti__text_bytes(to, from.data, (size_t)from.size);
    for (; !to->failed && at < to->size; at++)
        if (to->data[at] >= first && to->data[at] < first + 26)
            to->data[at] = (char)(to->data[at] - first + to_first);
}
