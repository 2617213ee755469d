/* scatter.c: indices from data, checked, and sums at places that they name; see scatter.h. */
#include "ops/shape/scatter.h"

#include <stdio.h>

#include "tensor/dtype.h"

/* "[2,1]": the flat index as one for each axis. */
static void place_text(const tutti_view *view, int64_t flat, char ret_text[TUTTI_TYPE_TEXT])
{
    int64_t index[TUTTI_MAX_RANK];
    size_t used = 0;
    for (int i = view->rank - 1; i >= 0; i--) {
        index[i] = flat % view->dims[i];
        flat /= view->dims[i];
    }
    ret_text[0] = '\0';
    for (int i = 0; i < view->rank; i++)
        used += (size_t)snprintf(ret_text + used, TUTTI_TYPE_TEXT - used, "%s%lld", i ? "," : "[",
                                 (long long)index[i]);
    snprintf(ret_text + used, TUTTI_TYPE_TEXT - used, "%s", view->rank ? "]" : "");
}

static tutti_status refuse(const tutti_call *call, const tutti_view *indices, int64_t i, int axis,
                           int64_t limit)
{
    char place[TUTTI_TYPE_TEXT];
    long long value = (long long)tutti__index_at(indices, i);
    place_text(indices, i, place);
    if (limit == 0)
        return RULE_FAIL(call, TUTTI_OUT_OF_RANGE, "indices%s is %lld, but axis %d has no elements",
                         place, value, axis);
    return RULE_FAIL(call, TUTTI_OUT_OF_RANGE,
                     "indices%s is %lld, but axis %d has size %lld: indices run from 0 to %lld",
                     place, value, axis, (long long)limit, (long long)limit - 1);
}

tutti_status tutti__indices_check(const tutti_call *call, int input, int first_axis, int columns,
                                  const int64_t *dims)
{
    const tutti_view *indices = &call->inputs[input];
    int64_t count = tutti_view_count(indices);
    for (int64_t i = 0; i < count; i += columns)
        for (int c = 0; c < columns; c++)
            if ((uint64_t)tutti__index_at(indices, i + c) >= (uint64_t)dims[first_axis + c])
                return refuse(call, indices, i + c, first_axis + c, dims[first_axis + c]);
    return TUTTI_OK;
}

#define ADD_ROWS(type, sum)                                                                        \
    for (int64_t i = 0; i < scatter->count; i++) {                                                 \
        type *to = (type *)y->data + scatter->start(scatter->context, i);                          \
        const type *from = (const type *)updates->data + i * scatter->length;                      \
        for (int64_t j = 0; j < scatter->length; j++)                                              \
            to[j] = (type)(sum);                                                                   \
    }                                                                                              \
    break

/* Integers wrap round. */
static void add_rows(const tutti_scatter *scatter, const tutti_view *updates, const tutti_view *y)
{
    switch (y->dtype) {
    case TUTTI_F32:
        ADD_ROWS(float, to[j] + from[j]);
    case TUTTI_F64:
        ADD_ROWS(double, to[j] + from[j]);
    case TUTTI_I8:
        ADD_ROWS(int8_t, to[j] + from[j]);
    case TUTTI_U8:
        ADD_ROWS(uint8_t, to[j] + from[j]);
    case TUTTI_I32:
        ADD_ROWS(int32_t, (uint32_t)to[j] + (uint32_t)from[j]);
    case TUTTI_I64:
        ADD_ROWS(int64_t, (uint64_t)to[j] + (uint64_t)from[j]);
    default:
        break;
    }
}
#undef ADD_ROWS

enum { TILE = 2048 };

/* Elements [first, first + count) of y: all that the updates add to them, in double. */
static void add_tile(const tutti_scatter *scatter, const tutti_view *updates, const tutti_view *y,
                     int64_t first, int64_t count)
{
    double sums[TILE] = {0};
    for (int64_t i = 0; i < scatter->count; i++) {
        int64_t start = scatter->start(scatter->context, i), end = start + scatter->length;
        int64_t low = start > first ? start : first;
        int64_t high = end < first + count ? end : first + count;
        for (int64_t at = low; at < high; at++)
            sums[at - first] += tutti_view_get(updates, i * scatter->length + at - start);
    }
    tutti__elements_from_doubles(y->dtype, tutti__element(y, first), count, sums);
}

void tutti__scatter_add(const tutti_scatter *scatter, const tutti_view *updates,
                        const tutti_view *y)
{
    int64_t count = tutti_view_count(y);
    if (y->dtype != TUTTI_F16 && y->dtype != TUTTI_BF16) {
        tutti__fill_view(y, 0);
        if (scatter->length > 0)
            add_rows(scatter, updates, y);
        return;
    }
    for (int64_t first = 0; first < count; first += TILE)
        add_tile(scatter, updates, y, first, count - first < TILE ? count - first : TILE);
}

tutti_index_rows tutti__index_rows(const tutti_view *indices, int rank, const int64_t *dims)
{
    tutti_index_rows rows = {.indices = indices, .columns = (int)indices->dims[indices->rank - 1]};
    rows.rows = tutti__dims_product(indices->rank - 1, indices->dims);
    rows.length = tutti__dims_product(rank - rows.columns, dims + rows.columns);
    tutti__strides_of(rank, dims, rows.strides);
    return rows;
}

int64_t tutti__index_rows_start(const void *index_rows, int64_t row)
{
    const tutti_index_rows *rows = index_rows;
    int64_t start = 0;
    for (int i = 0; i < rows->columns; i++)
        start += tutti__index_at(rows->indices, row * rows->columns + i) * rows->strides[i];
    return start;
}

tutti_status tutti__index_columns(const tutti_infer *node, int input, int rank, int *ret_columns)
{
    char text[TUTTI_TYPE_TEXT];
    const tutti_type *indices = &node->inputs[input];
    TUTTI_TRY(tutti__shape_indices(node, input));
    int64_t columns = indices->rank > 0 ? indices->dims[indices->rank - 1] : TUTTI_ANY;
    if (columns < 0 || columns > rank)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "input %d (indices) is %s, needs a last dimension that is known and at most %d, "
            "the number of axes that it indexes",
            input, tutti_type_text(indices, text), rank);
    *ret_columns = (int)columns;
    return TUTTI_OK;
}

/* ---- scatter_nd and scatter_nd_like ---- */

tutti_status tutti__scatter_nd_infer(tutti_infer *node, const tutti_type *like)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT], c[TUTTI_TYPE_TEXT];
    const tutti_type *indices = &node->inputs[0], *updates = &node->inputs[1];
    int columns = 0, rank = like->rank;
    const int64_t *dims = like->dims;
    int64_t merged;
    TUTTI_TRY(tutti__shape_numbers(node, 1));
    TUTTI_TRY(tutti__index_columns(node, 0, rank, &columns));
    bool agree = updates->rank == indices->rank - 1 + rank - columns;
    for (int i = 0; agree && i < updates->rank; i++)
        agree = tutti__shape_merge(updates->dims[i],
                                   i < indices->rank - 1 ? indices->dims[i]
                                                         : dims[i - (indices->rank - 1) + columns],
                                   &merged);
    if (!agree) {
        tutti_type y = tutti_type_make(updates->dtype, rank, dims);
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "updates are %s, which do not fit indices %s into a result %s: they need the "
            "dimensions of indices without the last, then those that are not indexed",
            tutti_type_text(updates, a), tutti_type_text(indices, b), tutti_type_text(&y, c));
    }
    return tutti__shape_output(node, 0, updates->dtype, rank, dims);
}

tutti_status tutti__scatter_nd_gradient(tutti_gradient *node)
{
    if (node->wanted[1])
        node->input_grads[1] = tutti_gather_nd(node->output_grads[0], node->inputs[0]);
    return TUTTI_OK;
}

tutti_status tutti__scatter_nd_reference(const tutti_call *call)
{
    const tutti_view *indices = &call->inputs[0], *y = &call->outputs[0];
    tutti_index_rows rows = tutti__index_rows(indices, y->rank, y->dims);
    tutti_scatter scatter = {rows.rows, rows.length, tutti__index_rows_start, &rows};
    TUTTI_TRY(tutti__indices_check(call, 0, 0, rows.columns, y->dims));
    tutti__scatter_add(&scatter, &call->inputs[1], y);
    return TUTTI_OK;
}

int tutti__scatter_nd_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    const tutti_type *indices = &node->inputs[0];
    int columns = (int)indices->dims[indices->rank - 1];
    tutti_cuts cuts = {.capacity = capacity, .ret = ret};
    for (int i = 0; i < indices->rank - 1; i++) {
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[0] = way->inputs[1] = (int8_t)i;
        way->outputs[0] = TUTTI_PARTIAL_SUM;
    }
    for (int i = columns; i < node->outputs[0].rank; i++) {
        tutti_split *way = tutti__cut(&cuts);
        way->inputs[1] = (int8_t)(indices->rank - 1 + i - columns);
        way->outputs[0] = (int8_t)i;
        tutti__cut_like(node, way, 2, i);
    }
    return cuts.count;
}

void tutti__scatter_nd_cost(const tutti_infer *node, tutti_cost *ret)
{
    tutti__cost_move(node, ret);
    ret->flops = tutti__shape_elements(&node->inputs[1]);
}
