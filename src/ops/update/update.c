/* update.c: what the update operators share; see update.h. */
#include "ops/update/update.h"

#include <stdlib.h>

#include "tensor/dtype.h"

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

size_t tutti__row_groups_bytes(int64_t count)
{
    return (size_t)count * 4 * sizeof(int64_t);
}

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* One stable pass: rows in order of the digit at `shift`. */
static void sort_by_digit(int64_t count, int shift, const int64_t *order, const int64_t *index,
                          int64_t *ret_order, int64_t *ret_index)
{
    int64_t starts[DIGITS + 1] = {0};
    for (int64_t i = 0; i < count; i++)
        starts[(index[i] >> shift & (DIGITS - 1)) + 1]++;
    for (int d = 0; d < DIGITS; d++)
        starts[d + 1] += starts[d];
    for (int64_t i = 0; i < count; i++) {
        int64_t to = starts[index[i] >> shift & (DIGITS - 1)]++;
        ret_order[to] = order[i];
        ret_index[to] = index[i];
    }
}

tutti_status tutti__row_groups_in(const tutti_kernel_call *call, const tutti_view *indices,
                                  int64_t limit, void *memory, tutti_row_groups *ret)
{
    int64_t count = tutti_view_count(indices), most = 0, *arrays = memory;
    TUTTI_TRY(tutti__check_indices(call, indices, limit));
    if (count == 0) { /* there may be no memory either */
        *ret = (tutti_row_groups){0};
        return TUTTI_OK;
    }
    tutti_row_groups groups = {.count = count, .order = arrays, .index = arrays + count};
    tutti_row_groups sorted = {
        .count = count, .order = arrays + 2 * count, .index = arrays + 3 * count};
    tutti__elements_to_ints(indices->dtype, indices->data, count, groups.index);
    for (int64_t i = 0; i < count; i++) {
        groups.order[i] = i;
        most = groups.index[i] > most ? groups.index[i] : most;
    }
    for (int shift = 0; shift < 63 && most >> shift > 0; shift += DIGIT_BITS) {
        sort_by_digit(count, shift, groups.order, groups.index, sorted.order, sorted.index);
        tutti_row_groups swap = groups;
        groups = sorted;
        sorted = swap;
    }
    *ret = groups;
    return TUTTI_OK;
}

tutti_status tutti__row_groups(const tutti_kernel_call *call, const tutti_view *indices,
                               int64_t limit, tutti_row_groups *ret)
{
    int64_t count = tutti_view_count(indices);
    void *memory = malloc(tutti__row_groups_bytes(count) + 1);
    if (!memory)
        return RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory to sort %lld rows", (long long)count);
    tutti_status status = tutti__row_groups_in(call, indices, limit, memory, ret);
    if (status != TUTTI_OK)
        free(memory);
    else
        ret->memory = memory;
    return status;
}

void tutti__row_groups_free(tutti_row_groups *groups)
{
    free(groups->memory);
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
