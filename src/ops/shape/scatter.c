/* scatter.c: indices from data, checked, and sums at places that they name; see scatter.h. */
#include "ops/shape/scatter.h"

#include <stdio.h>
#include <stdlib.h>

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

static tutti_status scatter_refuse(const tutti_kernel_call *call, const tutti_view *indices,
                                   int64_t i, int axis, int64_t limit)
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

/* Whether all indices from `first` on, every columns-th one, lie in [0, limit). */
static bool all_inside(const tutti_view *indices, int64_t first, int64_t count, int columns,
                       int64_t limit)
{
    bool outside = false;
    if (indices->dtype == TUTTI_I32) {
        const int32_t *index = indices->data;
        for (int64_t i = first; i < count; i += columns)
            outside |= (uint64_t)(int64_t)index[i] >= (uint64_t)limit;
    } else {
        const int64_t *index = indices->data;
        for (int64_t i = first; i < count; i += columns)
            outside |= (uint64_t)index[i] >= (uint64_t)limit;
    }
    return !outside;
}

tutti_status tutti__indices_check(const tutti_kernel_call *call, int input, int first_axis,
                                  int columns, const int64_t *dims)
{
    const tutti_view *indices = &call->inputs[input];
    int64_t count = tutti_view_count(indices);
    bool inside = true;
    for (int c = 0; inside && c < columns; c++)
        inside = all_inside(indices, c, count, columns, dims[first_axis + c]);
    for (int64_t i = 0; !inside && i < count; i += columns)
        for (int c = 0; c < columns; c++)
            if ((uint64_t)tutti__index_at(indices, i + c) >= (uint64_t)dims[first_axis + c])
                return scatter_refuse(call, indices, i + c, first_axis + c, dims[first_axis + c]);
    return TUTTI_OK;
}

enum {
    TILE = 2048, /* elements of y that are summed at once */
    STARTS = 512 /* updates whose places are asked for at once */
};

#define ADD_ROWS(type, sum)                                                                        \
    for (int64_t i = 0; i < count; i++) {                                                          \
        type *to = (type *)y->data + starts[i];                                                    \
        const type *from = (const type *)updates->data + (first + i) * length;                     \
        for (int64_t j = 0; j < length; j++)                                                       \
            to[j] = (type)(sum);                                                                   \
    }                                                                                              \
    break

/* Updates [first, first + count), which go to starts[0] and so on. Integers wrap round. */
static void add_rows(const tutti_view *updates, const tutti_view *y, int64_t length, int64_t first,
                     int64_t count, const int64_t *starts)
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

static void add_in_place(const tutti_scatter *scatter, const tutti_view *updates,
                         const tutti_view *y)
{
    int64_t starts[STARTS];
    for (int64_t first = 0; first < scatter->count; first += STARTS) {
        int64_t count = scatter->count - first < STARTS ? scatter->count - first : STARTS;
        scatter->starts(scatter->context, first, count, starts);
        add_rows(updates, y, scatter->length, first, count, starts);
    }
}

/* y cut into tiles; order[firsts[t]], … up to firsts[t + 1] are the updates that reach into tile t,
 * rising, so that each element's sum has the order of the updates. */
typedef struct {
    const tutti_view *updates, *y;
    int64_t length, tiles;
    int64_t *starts, *firsts, *order;
} sorted;

static void free_sorted(sorted *all)
{
    free(all->starts);
    free(all->firsts);
    free(all->order);
}

/* Counting sort by tile. */
static bool sort_updates(const tutti_scatter *scatter, sorted *all)
{
    int64_t count = scatter->count, total = 0;
    all->starts = calloc((size_t)count + 1, sizeof *all->starts);
    all->firsts = calloc((size_t)all->tiles + 2, sizeof *all->firsts);
    if (!all->starts || !all->firsts)
        return false;
    scatter->starts(scatter->context, 0, count, all->starts);
    int64_t *next = all->firsts + 1; /* where the next update of each tile goes */
    for (int64_t i = 0; i < count; i++)
        for (int64_t t = all->starts[i] / TILE; t <= (all->starts[i] + all->length - 1) / TILE; t++)
            next[t]++;
    for (int64_t t = 0; t < all->tiles; t++) {
        int64_t here = next[t];
        next[t] = total;
        total += here;
    }
    all->order = calloc((size_t)total + 1, sizeof *all->order);
    if (!all->order)
        return false;
    for (int64_t i = 0; i < count; i++)
        for (int64_t t = all->starts[i] / TILE; t <= (all->starts[i] + all->length - 1) / TILE; t++)
            all->order[next[t]++] = i;
    return true;
}

/* All that the updates add to one tile, in double. */
static void add_tile(void *context, int64_t tile)
{
    const sorted *all = context;
    double sums[TILE] = {0}, row[TILE];
    int64_t first = tile * TILE, end = tutti_view_count(all->y);
    end = end - first < TILE ? end : first + TILE;
    for (int64_t n = all->firsts[tile]; n < all->firsts[tile + 1]; n++) {
        int64_t i = all->order[n], low = all->starts[i], high = low + all->length;
        int64_t from = i * all->length + (low < first ? first - low : 0);
        low = low < first ? first : low;
        high = high < end ? high : end;
        tutti__elements_to_doubles(all->updates->dtype, tutti__element(all->updates, from),
                                   high - low, row);
        for (int64_t at = 0; at < high - low; at++)
            sums[low - first + at] += row[at];
    }
    tutti__elements_from_doubles(all->y->dtype, tutti__element(all->y, first), end - first, sums);
}

tutti_status tutti__scatter_add(const tutti_kernel_call *call, const tutti_scatter *scatter,
                                const tutti_view *updates, const tutti_view *y)
{
    sorted all = {.updates = updates, .y = y, .length = scatter->length};
    tutti_status status = TUTTI_OK;
    bool any = scatter->length > 0 && scatter->count > 0;
    if (!any || (y->dtype != TUTTI_F16 && y->dtype != TUTTI_BF16)) {
        tutti__fill_view(y, 0);
        if (any)
            add_in_place(scatter, updates, y);
        return TUTTI_OK;
    }
    all.tiles = (tutti_view_count(y) + TILE - 1) / TILE;
    if (sort_updates(scatter, &all))
        tutti_parallel(call, all.tiles, add_tile, &all);
    else
        status = RULE_FAIL(call, TUTTI_NO_MEMORY, "no memory for the places of %lld updates",
                           (long long)scatter->count);
    free_sorted(&all);
    return status;
}

tutti_index_rows tutti__index_rows(const tutti_view *indices, int rank, const int64_t *dims)
{
    tutti_index_rows rows = {.indices = indices, .columns = (int)indices->dims[indices->rank - 1]};
    rows.rows = tutti__dims_product(indices->rank - 1, indices->dims);
    rows.length = tutti__dims_product(rank - rows.columns, dims + rows.columns);
    tutti__strides_of(rank, dims, rows.strides);
    return rows;
}

void tutti__index_rows_starts(const void *index_rows, int64_t first, int64_t count,
                              int64_t *ret_starts)
{
    const tutti_index_rows *rows = index_rows;
    for (int64_t n = 0; n < count; n++) {
        int64_t start = 0;
        for (int i = 0; i < rows->columns; i++)
            start +=
                tutti__index_at(rows->indices, (first + n) * rows->columns + i) * rows->strides[i];
        ret_starts[n] = start;
    }
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

tutti_status tutti__scatter_nd_gradient(tutti_gradient_call *node)
{
    if (node->wanted[1])
        node->input_grads[1] = tutti_gather_nd(node->output_grads[0], node->inputs[0]);
    return TUTTI_OK;
}

tutti_status tutti__scatter_nd_reference(const tutti_kernel_call *call)
{
    const tutti_view *indices = &call->inputs[0], *y = &call->outputs[0];
    tutti_index_rows rows = tutti__index_rows(indices, y->rank, y->dims);
    tutti_scatter scatter = {rows.rows, rows.length, tutti__index_rows_starts, &rows};
    TUTTI_TRY(tutti__indices_check(call, 0, 0, rows.columns, y->dims));
    return tutti__scatter_add(call, &scatter, &call->inputs[1], y);
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
