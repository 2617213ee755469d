/* update.c: what the update operators share; see update.h. */
#include "ops/update/update.h"

#include <stdlib.h>

tutti_status tutti__need_float_variable(const tutti_infer *node, int i)
{
    char text[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__need_variable(node, i));
    if (!tutti_dtype_is_float(node->inputs[i].dtype))
        return RULE_FAIL(node, TUTTI_INVALID, "the variable is %s, needs floats",
                         tutti_type_text(&node->inputs[i], text));
    return TUTTI_OK;
}

tutti_status tutti__need_slot(const tutti_infer *node, int i)
{
    char own[TUTTI_TYPE_TEXT], variable[TUTTI_TYPE_TEXT];
    TUTTI_TRY(tutti__need_variable(node, i));
    if (!tutti_type_equal(&node->inputs[i], &node->inputs[0]))
        return RULE_FAIL(node, TUTTI_INVALID, "slot %d is %s, its variable is %s; they must agree",
                         i, tutti_type_text(&node->inputs[i], own),
                         tutti_type_text(&node->inputs[0], variable));
    return TUTTI_OK;
}

typedef struct placed {
    int64_t index, row;
} placed;

static int compare(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->index != y->index)
        return x->index < y->index ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

tutti_status tutti__row_groups(const tutti_call *call, const tutti_view *indices, int64_t limit,
                               tutti_row_groups *ret)
{
    TUTTI_TRY(tutti__check_indices(call, indices, limit));
    int64_t count = tutti_view_count(indices);
    placed *rows = calloc((size_t)count + 1, sizeof *rows);
    tutti_row_groups groups = {.count = count,
                               .order = calloc((size_t)count + 1, sizeof *groups.order),
                               .index = calloc((size_t)count + 1, sizeof *groups.index)};
    if (!rows || !groups.order || !groups.index) {
        free(rows);
        tutti__row_groups_free(&groups);
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory to sort %lld rows", (long long)count);
    }
    for (int64_t i = 0; i < count; i++)
        rows[i] = (placed){tutti_view_get_int(indices, i), i};
    qsort(rows, (size_t)count, sizeof *rows, compare);
    for (int64_t i = 0; i < count; i++) {
        groups.order[i] = rows[i].row;
        groups.index[i] = rows[i].index;
    }
    free(rows);
    *ret = groups;
    return TUTTI_OK;
}

void tutti__row_groups_free(tutti_row_groups *groups)
{
    free(groups->order);
    free(groups->index);
}

int64_t tutti__row_groups_next(const tutti_row_groups *groups, int64_t at)
{
    int64_t next = at + 1;
    while (next < groups->count && groups->index[next] == groups->index[at])
        next++;
    return next;
}

double tutti__row_groups_sum(const tutti_row_groups *groups, const tutti_view *rows,
                             int64_t row_size, int64_t at, int64_t column)
{
    double sum = 0;
    for (int64_t i = at; i < groups->count && groups->index[i] == groups->index[at]; i++)
        sum += tutti_view_get(rows, groups->order[i] * row_size + column);
    return sum;
}
