/* norm.h: layer_norm and rms_norm, which work row by row, and sums over rows.
 *
 * Sums over rows are taken in chunks of rows, cut by shape, and the chunks added over one binary
 * tree. */
#ifndef TUTTI_DEVICE_CPU_ROW_NORM_H
#define TUTTI_DEVICE_CPU_ROW_NORM_H

#include "device/cpu/row/row.h"

enum { NORM_CHUNKS = 64 };

/* Rows cut into at most NORM_CHUNKS chunks, each of at least one piece. */
static inline row_matrix norm_chunks(const tutti_view *x)
{
    row_matrix m = row_matrix_of(x);
    int64_t rows = (m.rows + NORM_CHUNKS - 1) / NORM_CHUNKS;
    m.rows_per_piece = rows > m.rows_per_piece ? rows : m.rows_per_piece;
    m.pieces = m.columns == 0 ? 0 : (m.rows + m.rows_per_piece - 1) / m.rows_per_piece;
    return m;
}

static inline row_matrix norm_chunks_of_type(const tutti_type *type)
{
    tutti_view view = {.rank = type->rank, .dims = type->dims};
    return norm_chunks(&view);
}

/* partial[chunk][floats] added over a tree into partial[0]. */
static inline void norm_add_chunks(float *partial, int64_t chunks, int64_t floats)
{
    for (int64_t stride = 1; stride < chunks; stride *= 2)
        for (int64_t c = 0; c + stride < chunks; c += 2 * stride) {
            float *to = partial + c * floats, *from = partial + (c + stride) * floats;
            ROW_MAP(to, floats, ROW_AT(to) + ROW_AT(from));
        }
}

typedef struct norm_work {
    const float *x, *scale, *offset, *grad;
    float *y, *partial;
    row_matrix matrix;
    float epsilon;
    bool centred; /* layer_norm: the mean is taken off */
} norm_work;

/* Mean (0 for rms_norm) and 1 / sqrt(variance + epsilon) of a row. */
VEC_INLINE float norm_moments(const norm_work *w, const float *x, float *ret_mean)
{
    int64_t count = w->matrix.columns;
    float mean = 0, squares;
    if (w->centred) {
        /* Of distances from the first, so that of equal numbers it is exact. */
        const float start = isfinite(x[0]) ? x[0] : 0;
        ROW_SUM(mean, count, ROW_AT_OR(x, start) - start);
        mean = start + mean / (float)count;
    }
    /* Beyond the end x counts as the mean, which adds nothing. */
    ROW_SUM(squares, count, (ROW_AT_OR(x, mean) - mean) * (ROW_AT_OR(x, mean) - mean));
    *ret_mean = mean;
    return 1 / sqrtf(squares / (float)count + w->epsilon);
}

static inline void norm_forward(void *context, int64_t piece)
{
    const norm_work *w = context;
    int64_t first, end = row_range(&w->matrix, piece, &first), columns = w->matrix.columns;
    for (int64_t row = first; row < end; row++) {
        const float *x = w->x + row * columns;
        float *y = w->y + row * columns, mean;
        const float r = norm_moments(w, x, &mean);
        if (w->centred)
            ROW_MAP(y, columns, (ROW_AT(x) - mean) * r * ROW_AT(w->scale) + ROW_AT(w->offset));
        else
            ROW_MAP(y, columns, ROW_AT(x) * r * ROW_AT(w->scale));
    }
}

/* dx of a row; adds to the chunk's dscale and, for layer_norm, doffset behind it. */
VEC_INLINE void norm_backward_row(const norm_work *w, int64_t row, float *by_scale)
{
    int64_t columns = w->matrix.columns;
    const float *x = w->x + row * columns, *grad = w->grad + row * columns, *scale = w->scale;
    float *y = w->y + row * columns, *by_offset = by_scale + columns, mean, sum = 0, sum_xhat;
    const float r = norm_moments(w, x, &mean);
    if (w->centred)
        ROW_SUM(sum, columns, ROW_AT(scale) * ROW_AT(grad));
    ROW_SUM(sum_xhat, columns, ROW_AT(scale) * ROW_AT(grad) * (ROW_AT(x) - mean));
    const float shift = sum / (float)columns, slope = sum_xhat * r * r / (float)columns;
    ROW_MAP(by_scale, columns, ROW_AT(by_scale) + ROW_AT(grad) * (ROW_AT(x) - mean) * r);
    if (w->centred)
        ROW_MAP(by_offset, columns, ROW_AT(by_offset) + ROW_AT(grad));
    ROW_MAP(y, columns, (ROW_AT(scale) * ROW_AT(grad) - shift - (ROW_AT(x) - mean) * slope) * r);
}

static inline void norm_backward(void *context, int64_t chunk)
{
    const norm_work *w = context;
    int64_t first, end = row_range(&w->matrix, chunk, &first);
    int64_t floats = (w->centred ? 2 : 1) * w->matrix.columns;
    float *partial = w->partial + chunk * floats;
    memset(partial, 0, (size_t)floats * sizeof(float));
    for (int64_t row = first; row < end; row++)
        norm_backward_row(w, row, partial);
}

static inline int norm_score(const tutti_kernel_query *query)
{
    return row_floats(query, ~0u) ? 100 : 0;
}

static inline size_t norm_backward_workspace(const tutti_kernel_query *query)
{
    row_matrix m = norm_chunks_of_type(&query->node.inputs[0]);
    return (size_t)(2 * m.pieces * m.columns) * sizeof(float);
}

static inline tutti_status norm_run(const tutti_kernel_call *call, bool centred)
{
    norm_work w = {.x = call->inputs[0].data,
                   .scale = call->inputs[1].data,
                   .offset = centred ? call->inputs[2].data : NULL,
                   .y = call->outputs[0].data,
                   .matrix = row_matrix_of(&call->inputs[0]),
                   .centred = centred,
                   .epsilon = (float)tutti__call_float(call, "epsilon")};
    tutti_parallel(call, w.matrix.pieces, norm_forward, &w);
    return TUTTI_OK;
}

static inline tutti_status norm_run_backward(const tutti_kernel_call *call, bool centred)
{
    norm_work w = {.x = call->inputs[0].data,
                   .scale = call->inputs[1].data,
                   .grad = call->inputs[2].data,
                   .y = call->outputs[0].data,
                   .partial = call->workspace,
                   .matrix = norm_chunks(&call->inputs[0]),
                   .centred = centred,
                   .epsilon = (float)tutti__call_float(call, "epsilon")};
    size_t bytes = (size_t)w.matrix.columns * sizeof(float);
    if (w.matrix.pieces == 0) {
        memset(call->outputs[1].data, 0, bytes);
        if (centred)
            memset(call->outputs[2].data, 0, bytes);
        return TUTTI_OK;
    }
    tutti_parallel(call, w.matrix.pieces, norm_backward, &w);
    norm_add_chunks(w.partial, w.matrix.pieces, (centred ? 2 : 1) * w.matrix.columns);
    memcpy(call->outputs[1].data, w.partial, bytes);
    if (centred)
        memcpy(call->outputs[2].data, w.partial + w.matrix.columns, bytes);
    return TUTTI_OK;
}

#endif
