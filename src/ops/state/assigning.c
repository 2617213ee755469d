/* assigning.c: what the operators that write variables share; see assign.h. */
#include "ops/state/assign.h"
#include "tensor/dtype.h"

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

enum { RUN = 512 }; /* 16-bit floats that are converted at once */

/* 16-bit floats: in double, rounded once. */
static void accumulate_short(void *to, const void *from, tutti_dtype dtype, int64_t count,
                             double sign)
{
    double sums[RUN], rows[RUN];
    for (int64_t first = 0; first < count; first += RUN) {
        int64_t run = count - first < RUN ? count - first : RUN;
        void *out = (uint16_t *)to + first;
        tutti__elements_to_doubles(dtype, out, run, sums);
        tutti__elements_to_doubles(dtype, (const uint16_t *)from + first, run, rows);
        for (int64_t i = 0; i < run; i++)
            sums[i] += sign * rows[i];
        tutti__elements_from_doubles(dtype, out, run, sums);
    }
}

#define ACCUMULATE(type, wide)                                                                     \
    {                                                                                              \
        type *old = (type *)to->data + at;                                                         \
        const type *x = (const type *)from->data + from_at;                                        \
        if (combine == TUTTI_COMBINE_ADD)                                                          \
            for (int64_t i = 0; i < count; i++)                                                    \
                old[i] = (type)((wide)old[i] + (wide)x[i]);                                        \
        else                                                                                       \
            for (int64_t i = 0; i < count; i++)                                                    \
                old[i] = (type)((wide)old[i] - (wide)x[i]);                                        \
        break;                                                                                     \
    }

/* to[at + i] += from[from_at + i], or -=; floats round once, integers wrap. */
static void accumulate(const tutti_view *to, int64_t at, const tutti_view *from, int64_t from_at,
                       int64_t count, tutti_combine combine)
{
    switch (to->dtype) {
    case TUTTI_F32:
        ACCUMULATE(float, float)
    case TUTTI_F64:
        ACCUMULATE(double, double)
    case TUTTI_I8:
        ACCUMULATE(int8_t, uint32_t)
    case TUTTI_U8:
        ACCUMULATE(uint8_t, uint32_t)
    case TUTTI_I32:
        ACCUMULATE(int32_t, uint32_t)
    case TUTTI_I64:
        ACCUMULATE(int64_t, uint64_t)
    default:
        accumulate_short((uint16_t *)to->data + at, (const uint16_t *)from->data + from_at,
                         to->dtype, count, combine == TUTTI_COMBINE_ADD ? 1 : -1);
    }
}
#undef ACCUMULATE

tutti_status tutti__assign(const tutti_kernel_call *call, tutti_combine combine)
{
    const tutti_view *variable = &call->inputs[0], *value = &call->inputs[1];
    if (combine == TUTTI_COMBINE_SET)
        tutti__view_copy(variable, value);
    else
        accumulate(variable, 0, value, 0, tutti_view_count(variable), combine);
    tutti__view_copy(&call->outputs[0], variable);
    return TUTTI_OK;
}

tutti_status tutti__scatter(const tutti_kernel_call *call, tutti_combine combine)
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
