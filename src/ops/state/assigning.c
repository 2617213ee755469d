/* assigning.c: what the operators that write variables share; see assign.h. */
#include "ops/state/assign.h"

static tutti_status need_numbers(const tutti_infer *node)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *type = &node->inputs[0];
    if (tutti_dtype_is_float(type->dtype) || tutti_dtype_is_int(type->dtype))
        return TUTTI_OK;
    return RULE_FAIL(node, TUTTI_INVALID, "the variable is %s; only numbers add up",
                     tutti_type_text(type, text));
}

tutti_status tutti__infer_assign(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_variable(node, 0));
    TUTTI_TRY(tutti__need_type(node, 1, &node->inputs[0], "the variable"));
    return tutti_infer_same(node);
}

tutti_status tutti__infer_assign_numbers(tutti_infer *node)
{
    TUTTI_TRY(tutti__infer_assign(node));
    return need_numbers(node);
}

tutti_status tutti__infer_scatter(tutti_infer *node)
{
    TUTTI_TRY(tutti__need_variable(node, 0));
    TUTTI_TRY(tutti__need_rows(node, 0, 1, 2));
    return tutti_infer_same(node);
}

tutti_status tutti__infer_scatter_numbers(tutti_infer *node)
{
    TUTTI_TRY(tutti__infer_scatter(node));
    return need_numbers(node);
}

/* to[at + i] += sign * from[from_at + i]; floats round once, integers wrap. */
static void accumulate(const tutti_view *to, int64_t at, const tutti_view *from, int64_t from_at,
                       int64_t count, tutti_combine combine)
{
    bool floats = tutti_dtype_is_float(to->dtype);
    for (int64_t i = 0; i < count; i++) {
        if (floats) {
            double x = tutti_view_get(from, from_at + i);
            double old = tutti_view_get(to, at + i);
            tutti_view_set(to, at + i, combine == TUTTI_COMBINE_ADD ? old + x : old - x);
        } else {
            uint64_t x = (uint64_t)tutti_view_get_int(from, from_at + i);
            uint64_t old = (uint64_t)tutti_view_get_int(to, at + i);
            tutti_view_set_int(to, at + i,
                               (int64_t)(combine == TUTTI_COMBINE_ADD ? old + x : old - x));
        }
    }
}

tutti_status tutti__assign(const tutti_call *call, tutti_combine combine)
{
    const tutti_view *variable = &call->inputs[0], *value = &call->inputs[1];
    if (combine == TUTTI_COMBINE_SET)
        tutti__view_copy(variable, value);
    else
        accumulate(variable, 0, value, 0, tutti_view_count(variable), combine);
    tutti__view_copy(&call->outputs[0], variable);
    return TUTTI_OK;
}

tutti_status tutti__scatter(const tutti_call *call, tutti_combine combine)
{
    const tutti_view *variable = &call->inputs[0], *indices = &call->inputs[1],
                     *rows = &call->inputs[2];
    int64_t row = tutti__row_count(variable), count = tutti_view_count(indices);
    size_t bytes = (size_t)row * tutti_dtype_size(variable->dtype);
    TUTTI_TRY(tutti__check_indices(call, indices, variable->dims[0]));
    for (int64_t i = 0; bytes > 0 && i < count; i++) {
        int64_t at = tutti_view_get_int(indices, i);
        if (combine == TUTTI_COMBINE_SET)
            memcpy((char *)variable->data + (size_t)at * bytes,
                   (const char *)rows->data + (size_t)i * bytes, bytes);
        else
            accumulate(variable, at * row, rows, i * row, row, combine);
    }
    tutti__view_copy(&call->outputs[0], variable);
    return TUTTI_OK;
}

int tutti__split_assign(const tutti_infer *node, int capacity, tutti_split *ret)
{
    for (int axis = 0; axis < node->inputs[0].rank && axis < capacity; axis++)
        ret[axis] =
            (tutti_split){.inputs = {(int8_t)axis, (int8_t)axis}, .outputs = {(int8_t)axis}};
    return node->inputs[0].rank;
}

int tutti__split_scatter(const tutti_infer *node, int capacity, tutti_split *ret)
{
    int ways = 0, shift = node->inputs[1].rank - 1;
    for (int axis = 1; axis < node->inputs[0].rank; axis++, ways++)
        if (ways < capacity)
            ret[ways] = (tutti_split){.inputs = {(int8_t)axis, TUTTI_WHOLE, (int8_t)(axis + shift)},
                                      .outputs = {(int8_t)axis}};
    return ways;
}
