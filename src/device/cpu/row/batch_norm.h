/* batch_norm.h: batch norm and its gradient with what stands round them, for files compiled once
 * for each instruction set.
 *
 * Sums over rows are taken in chunks of rows, a few columns at a time in registers. A chunk of rows
 * gives its count, mean and sum of squared distances m2. Its mean is that of distances from its
 * first row: so it is exact where a column is constant, and loses nothing where numbers are large
 * beside what they differ by. Two chunks join as
 *   d = mean_b - mean_a, mean = mean_a + d n_b / n, m2 = m2_a + m2_b + d^2 n_a n_b / n. */
#ifndef TUTTI_DEVICE_CPU_ROW_BATCH_NORM_H
#define TUTTI_DEVICE_CPU_ROW_BATCH_NORM_H

#include "device/cpu/row/norm.h"

enum { BATCH_VECTORS = 4, BATCH_ROWS = 64 };

/* Registers of columns [at, at + vectors lanes) of a row, or the `rest` < VEC_LANES last ones. */
VEC_INLINE vec batch_at(const float *row, int64_t at, int v, int64_t rest)
{
    const float *from = row + at + v * VEC_LANES;
    return rest > 0 ? row_load_rest(from, rest, 0) : vec_load(from);
}

VEC_INLINE void batch_put(float *row, int64_t at, int v, int64_t rest, vec value)
{
    float *to = row + at + v * VEC_LANES;
    if (rest > 0)
        tile_store_rest(to, value, rest);
    else
        vec_store(to, value);
}

/* Calls EACH(vectors, at, rest), a function's name before its other arguments, for all columns. */
#define BATCH_COLUMNS(columns, each, ...)                                                          \
    do {                                                                                           \
        int64_t at = 0;                                                                            \
        for (; at + BATCH_VECTORS * VEC_LANES <= (columns); at += BATCH_VECTORS * VEC_LANES)       \
            each(BATCH_VECTORS, at, 0, __VA_ARGS__);                                               \
        for (; at + VEC_LANES <= (columns); at += VEC_LANES)                                       \
            each(1, at, 0, __VA_ARGS__);                                                           \
        if (at < (columns))                                                                        \
            each(1, at, (columns)-at, __VA_ARGS__);                                                \
    } while (0)

/* ---- forward: y = (x - mean) r scale + offset, and behind it + residual and relu ---- */

typedef struct batch_forward {
    const float *x, *scale, *offset, *residual; /* residual NULL: none */
    float *y, *mean, *variance, *moments, *factor;
    row_matrix matrix;
    bool relu;
} batch_forward;

/* Means and m2 of rows [first, end) of some columns. */
VEC_INLINE void batch_moments(int vectors, int64_t at, int64_t rest, const batch_forward *w,
                              int64_t first, int64_t end, float *mean, float *m2)
{
    const int64_t columns = w->matrix.columns;
    const float inverse = 1 / (float)(end - first);
    const vec none = vec_splat(0);
    vec sum[BATCH_VECTORS], start[BATCH_VECTORS], middle[BATCH_VECTORS];
    VEC_UNROLL for (int v = 0; v < vectors; v++)
    {
        vec x = batch_at(w->x + first * columns, at, v, rest);
        start[v] = vec_select(vec_eq(x - x, none), x, none); /* one that is finite */
        sum[v] = none;
    }
    for (int64_t row = first; row < end; row++)
        VEC_UNROLL for (int v = 0; v < vectors; v++) sum[v] =
            sum[v] + (batch_at(w->x + row * columns, at, v, rest) - start[v]);
    VEC_UNROLL for (int v = 0; v < vectors; v++)
    {
        middle[v] = start[v] + sum[v] * inverse;
        batch_put(mean, at, v, rest, middle[v]);
        sum[v] = vec_splat(0);
    }
    for (int64_t row = first; row < end; row++)
        VEC_UNROLL for (int v = 0; v < vectors; v++)
        {
            vec far = batch_at(w->x + row * columns, at, v, rest) - middle[v];
            sum[v] = sum[v] + far * far;
        }
    VEC_UNROLL for (int v = 0; v < vectors; v++) batch_put(m2, at, v, rest, sum[v]);
}

static void batch_chunk_moments(void *context, int64_t chunk)
{
    const batch_forward *w = context;
    int64_t first, end = row_range(&w->matrix, chunk, &first), columns = w->matrix.columns;
    float *mean = w->moments + chunk * 2 * columns, *m2 = mean + columns;
    BATCH_COLUMNS(columns, batch_moments, w, first, end, mean, m2);
}

/* Rows of chunks [chunk, chunk + span). */
static inline int64_t batch_rows_of(const row_matrix *m, int64_t chunk, int64_t span)
{
    int64_t first = chunk * m->rows_per_piece, end = (chunk + span) * m->rows_per_piece;
    return (end < m->rows ? end : m->rows) - first;
}

static inline void batch_join(const batch_forward *w, int64_t a, int64_t b, int64_t span)
{
    int64_t columns = w->matrix.columns;
    float *mean_a = w->moments + a * 2 * columns, *mean_b = w->moments + b * 2 * columns;
    float *m2_a = mean_a + columns, *m2_b = mean_b + columns;
    float count_a = (float)batch_rows_of(&w->matrix, a, span),
          count_b = (float)batch_rows_of(&w->matrix, b, span);
    const float part = count_b / (count_a + count_b), product = count_a * part;
#define D (ROW_AT(mean_b) - ROW_AT(mean_a))
    ROW_MAP(m2_a, columns, ROW_AT(m2_a) + ROW_AT(m2_b) + D * D * product);
    ROW_MAP(mean_a, columns, ROW_AT(mean_a) + D * part);
#undef D
}

/* Some columns of rows [first, end); what the columns need stays in registers. */
VEC_INLINE void batch_normalise_columns(int vectors, int64_t at, int64_t rest,
                                        const batch_forward *w, bool residual, int64_t first,
                                        int64_t end)
{
    const int64_t columns = w->matrix.columns;
    const float low = w->relu ? 0 : -INFINITY;
    vec mean[BATCH_VECTORS], factor[BATCH_VECTORS], offset[BATCH_VECTORS];
    VEC_UNROLL for (int v = 0; v < vectors; v++)
    {
        mean[v] = batch_at(w->mean, at, v, rest);
        factor[v] = batch_at(w->factor, at, v, rest);
        offset[v] = batch_at(w->offset, at, v, rest);
    }
    for (int64_t row = first; row < end; row++)
        VEC_UNROLL for (int v = 0; v < vectors; v++)
        {
            vec y = (batch_at(w->x + row * columns, at, v, rest) - mean[v]) * factor[v] + offset[v];
            if (residual)
                y = y + batch_at(w->residual + row * columns, at, v, rest);
            batch_put(w->y + row * columns, at, v, rest, vec_not_below(y, low));
        }
}

static void batch_normalise(void *context, int64_t chunk)
{
    const batch_forward *w = context;
    int64_t first, end = row_range(&w->matrix, chunk, &first), columns = w->matrix.columns;
    if (w->residual != NULL)
        BATCH_COLUMNS(columns, batch_normalise_columns, w, true, first, end);
    else
        BATCH_COLUMNS(columns, batch_normalise_columns, w, false, first, end);
}

/* Floats of moments and factors. */
static inline int64_t batch_forward_floats(const tutti_type *x)
{
    row_matrix m = norm_chunks_of_type(x);
    return (2 * m.pieces + 1) * m.columns;
}

/* moments, x, scale, offset, y, mean, variance, residual and relu are given. */
static inline void batch_forward_run(const tutti_kernel_call *call, batch_forward *w, float epsilon)
{
    int64_t columns = w->matrix.columns, chunks = w->matrix.pieces;
    w->factor = w->moments + 2 * chunks * columns;
    tutti_parallel(call, chunks, batch_chunk_moments, w);
    for (int64_t span = 1; span < chunks; span *= 2)
        for (int64_t c = 0; c + span < chunks; c += 2 * span)
            batch_join(w, c, c + span, span);
    for (int64_t c = 0; c < columns; c++) {
        w->mean[c] = w->moments[c];
        w->variance[c] = w->moments[columns + c] / (float)w->matrix.rows;
        w->factor[c] = w->scale[c] / sqrtf(w->variance[c] + epsilon);
    }
    tutti_parallel(call, chunks, batch_normalise, w);
}

/* ---- backward, with xhat = (x - mean) r, r = 1 / sqrt(variance + epsilon), sums over rows:
 * dscale = sum(grad xhat), doffset = sum(grad), dx = scale r (grad - doffset / rows - xhat dscale /
 * rows). Before it, where y is given: grad = y > 0 ? given + more : 0 ---- */

typedef struct batch_backward {
    const float *x, *scale, *mean, *variance;
    const float *given, *more, *y; /* more, y NULL: none */
    const float *grad;             /* what `given` becomes */
    float *masked;                 /* where that goes; NULL without y */
    float *dx, *r, *partial;
    row_matrix matrix;
} batch_backward;

/* Adds the sums of grad xhat and of grad of some columns of rows [first, end). */
VEC_INLINE void batch_some_sums(int vectors, int64_t at, int64_t rest, const batch_backward *w,
                                bool masks, bool adds, int64_t first, int64_t end,
                                vec total_scaled[BATCH_VECTORS], vec total[BATCH_VECTORS])
{
    const int64_t columns = w->matrix.columns;
    const vec none = vec_splat(0);
    vec mean[BATCH_VECTORS], r[BATCH_VECTORS], scaled[BATCH_VECTORS], sum[BATCH_VECTORS];
    VEC_UNROLL for (int v = 0; v < vectors; v++)
    {
        mean[v] = batch_at(w->mean, at, v, rest);
        r[v] = batch_at(w->r, at, v, rest);
        scaled[v] = sum[v] = none;
    }
    for (int64_t row = first; row < end; row++)
        VEC_UNROLL for (int v = 0; v < vectors; v++)
        {
            vec grad = batch_at(w->given + row * columns, at, v, rest);
            if (adds)
                grad = grad + batch_at(w->more + row * columns, at, v, rest);
            if (masks) {
                vec y = batch_at(w->y + row * columns, at, v, rest);
                grad = vec_select(vec_gt(y, none), grad, none);
                batch_put(w->masked + row * columns, at, v, rest, grad);
            }
            vec far = batch_at(w->x + row * columns, at, v, rest) - mean[v];
            scaled[v] = scaled[v] + grad * far * r[v];
            sum[v] = sum[v] + grad;
        }
    VEC_UNROLL for (int v = 0; v < vectors; v++)
    {
        total_scaled[v] = total_scaled[v] + scaled[v];
        total[v] = total[v] + sum[v];
    }
}

/* The same of all rows of a chunk, BATCH_ROWS at a time: what is added in one row drifts. */
VEC_INLINE void batch_sums(int vectors, int64_t at, int64_t rest, const batch_backward *w,
                           bool masks, bool adds, int64_t first, int64_t end, float *by_scale,
                           float *by_offset)
{
    vec scaled[BATCH_VECTORS] = {{0}}, sum[BATCH_VECTORS] = {{0}};
    for (int64_t row = first; row < end; row += BATCH_ROWS)
        batch_some_sums(vectors, at, rest, w, masks, adds, row,
                        end - row < BATCH_ROWS ? end : row + BATCH_ROWS, scaled, sum);
    VEC_UNROLL for (int v = 0; v < vectors; v++)
    {
        batch_put(by_scale, at, v, rest, scaled[v]);
        batch_put(by_offset, at, v, rest, sum[v]);
    }
}

static void batch_chunk_sums(void *context, int64_t chunk)
{
    const batch_backward *w = context;
    int64_t first, end = row_range(&w->matrix, chunk, &first), columns = w->matrix.columns;
    float *by_scale = w->partial + chunk * 2 * columns, *by_offset = by_scale + columns;
    if (w->y == NULL)
        BATCH_COLUMNS(columns, batch_sums, w, false, false, first, end, by_scale, by_offset);
    else if (w->more == NULL)
        BATCH_COLUMNS(columns, batch_sums, w, true, false, first, end, by_scale, by_offset);
    else
        BATCH_COLUMNS(columns, batch_sums, w, true, true, first, end, by_scale, by_offset);
}

VEC_INLINE void batch_dx_columns(int vectors, int64_t at, int64_t rest, const batch_backward *w,
                                 int64_t first, int64_t end)
{
    const int64_t columns = w->matrix.columns;
    const float inverse = 1 / (float)w->matrix.rows;
    vec mean[BATCH_VECTORS], slope[BATCH_VECTORS], shift[BATCH_VECTORS], factor[BATCH_VECTORS];
    VEC_UNROLL for (int v = 0; v < vectors; v++)
    {
        vec r = batch_at(w->r, at, v, rest);
        mean[v] = batch_at(w->mean, at, v, rest);
        slope[v] = r * batch_at(w->partial, at, v, rest) * inverse;
        shift[v] = batch_at(w->partial + columns, at, v, rest) * inverse;
        factor[v] = batch_at(w->scale, at, v, rest) * r;
    }
    for (int64_t row = first; row < end; row++)
        VEC_UNROLL for (int v = 0; v < vectors; v++)
        {
            vec far = batch_at(w->x + row * columns, at, v, rest) - mean[v];
            vec grad = batch_at(w->grad + row * columns, at, v, rest);
            batch_put(w->dx + row * columns, at, v, rest,
                      factor[v] * (grad - shift[v] - far * slope[v]));
        }
}

static void batch_chunk_dx(void *context, int64_t chunk)
{
    const batch_backward *w = context;
    int64_t first, end = row_range(&w->matrix, chunk, &first);
    BATCH_COLUMNS(w->matrix.columns, batch_dx_columns, w, first, end);
}

/* Floats of partial sums and r. */
static inline int64_t batch_backward_floats(const tutti_type *x)
{
    return batch_forward_floats(x);
}

/* All but r is given; dscale and doffset may be NULL. */
static inline void batch_backward_run(const tutti_kernel_call *call, batch_backward *w,
                                      float epsilon, float *dscale, float *doffset)
{
    int64_t columns = w->matrix.columns, chunks = w->matrix.pieces;
    const size_t bytes = (size_t)columns * sizeof(float);
    w->r = w->partial + 2 * chunks * columns;
    w->grad = w->y == NULL ? w->given : w->masked;
    for (int64_t c = 0; c < columns; c++)
        w->r[c] = 1 / sqrtf(w->variance[c] + epsilon);
    tutti_parallel(call, chunks, batch_chunk_sums, w);
    norm_add_chunks(w->partial, chunks, 2 * columns);
    tutti_parallel(call, chunks, batch_chunk_dx, w);
    if (dscale != NULL)
        memcpy(dscale, w->partial, bytes);
    if (doffset != NULL)
        memcpy(doffset, w->partial + columns, bytes);
}

#endif
