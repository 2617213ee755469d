/* softmax.h: softmax and log_softmax along any axis: x seen as [outer, count, inner]. */
#ifndef TUTTI_DEVICE_CPU_ROW_SOFTMAX_H
#define TUTTI_DEVICE_CPU_ROW_SOFTMAX_H

#include <stdlib.h>

#include "device/cpu/row/row.h"

enum { SOFTMAX_INNER = 64 }; /* columns that are done together when the axis is not the last */

typedef struct softmax_work {
    const float *x;
    float *y;
    int64_t outer, count, inner, blocks;
    row_matrix matrix;
    bool logarithm;
} softmax_work;

static inline void softmax_row(const softmax_work *w, int64_t row)
{
    int64_t count = w->count;
    const float *x = w->x + row * count;
    float *y = w->y + row * count;
    float most = row_max(x, count);
    if (w->logarithm) { /* most + log(sum) would have no digits for log(sum) where x is large */
        const float rest = (float)log((double)row_exp_sum(x, count, most));
        ROW_MAP(y, count, (ROW_AT(x) - most) - rest);
        return;
    }
    ROW_MAP(y, count, vec_exp(ROW_AT(x) - most));
    float sum;
    ROW_SUM(sum, count, ROW_AT(y));
    const float scale = 1 / sum;
    ROW_MAP(y, count, ROW_AT(y) * scale);
}

static inline void softmax_rows(void *context, int64_t piece)
{
    const softmax_work *w = context;
    int64_t first, end = row_range(&w->matrix, piece, &first);
    for (int64_t row = first; row < end; row++)
        softmax_row(w, row);
}

/* Columns [first, first + width) of one outer index, all at once. */
static inline void softmax_columns(void *context, int64_t piece)
{
    const softmax_work *w = context;
    int64_t first = piece % w->blocks * SOFTMAX_INNER, rest = w->inner - first;
    int64_t width = rest < SOFTMAX_INNER ? rest : SOFTMAX_INNER;
    const float *x = w->x + piece / w->blocks * w->count * w->inner + first;
    float *y = w->y + (x - w->x), most[SOFTMAX_INNER], sum[SOFTMAX_INNER];
    for (int64_t i = 0; i < width; i++) {
        most[i] = -INFINITY;
        sum[i] = 0;
    }
    for (int64_t c = 0; c < w->count; c++)
        ROW_MAP(most, width, vec_maximum(ROW_AT(x + c * w->inner), ROW_AT(most)));
    for (int64_t c = 0; c < w->count; c++) {
        const float *from = x + c * w->inner;
        float *to = y + c * w->inner;
        if (w->logarithm) {
            ROW_MAP(sum, width, ROW_AT(sum) + vec_exp(ROW_AT(from) - ROW_AT(most)));
        } else {
            ROW_MAP(to, width, vec_exp(ROW_AT(from) - ROW_AT(most)));
            ROW_MAP(sum, width, ROW_AT(sum) + ROW_AT(to));
        }
    }
    if (w->logarithm)
        ROW_MAP(sum, width, vec_log(ROW_AT(sum)));
    for (int64_t c = 0; c < w->count; c++) {
        const float *from = x + c * w->inner;
        float *to = y + c * w->inner;
        if (w->logarithm)
            ROW_MAP(to, width, (ROW_AT(from) - ROW_AT(most)) - ROW_AT(sum));
        else
            ROW_MAP(to, width, ROW_AT(to) / ROW_AT(sum));
    }
}

static inline int softmax_score(const tutti_kernel_query *query)
{
    return row_floats(query, 1) && query->node.inputs[0].rank > 0 ? 100 : 0;
}

/* Whether a single column goes as one of several: in deterministic mode another replica may have
 * more of them. */
static inline tutti_status softmax_prepare(const tutti_kernel_query *query, void **ret_plan)
{
    int64_t axis = tutti_attr_int(query->node.attrs, query->node.attr_count, "axis");
    int rank = query->node.inputs[0].rank;
    bool columns = query->deterministic && (axis < 0 ? axis + rank : axis) < rank - 1;
    return tutti__kernel_keep(query, &columns, sizeof columns, ret_plan);
}

static inline tutti_status softmax_run(const tutti_kernel_call *call, bool logarithm)
{
    const tutti_view *x = &call->inputs[0];
    int64_t axis = tutti__call_int(call, "axis");
    softmax_work w = {
        .x = x->data, .y = call->outputs[0].data, .outer = 1, .inner = 1, .logarithm = logarithm};
    axis = axis < 0 ? axis + x->rank : axis;
    w.count = x->dims[axis];
    for (int i = 0; i < x->rank; i++) {
        w.outer *= i < axis ? x->dims[i] : 1;
        w.inner *= i > axis ? x->dims[i] : 1;
    }
    if (w.inner == 1 && !*(const bool *)call->plan) {
        tutti_view matrix = {.rank = 2, .dims = (int64_t[]){w.outer, w.count}};
        w.matrix = row_matrix_of(&matrix);
        tutti_parallel(call, w.matrix.pieces, softmax_rows, &w);
        return TUTTI_OK;
    }
    w.blocks = (w.inner + SOFTMAX_INNER - 1) / SOFTMAX_INNER;
    tutti_parallel(call, w.count == 0 ? 0 : w.outer * w.blocks, softmax_columns, &w);
    return TUTTI_OK;
}

#endif
