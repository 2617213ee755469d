/* batch_norm.c: y = (x - mean) r scale + offset with mean and variance of each column over all
 * rows.
 *
 * A chunk of rows gives its count, mean and sum of squared distances m2; two chunks join as
 *   d = mean_b - mean_a, mean = mean_a + d n_b / n, m2 = m2_a + m2_b + d^2 n_a n_b / n. */
#include "device/cpu/row/norm.h"

typedef struct batch_work {
    const float *x, *scale, *offset;
    float *y, *mean, *variance, *moments, *factor, *shift;
    row_matrix matrix;
} batch_work;

/* A chunk's means, then its m2. */
static void chunk_moments(void *context, int64_t chunk)
{
    const batch_work *w = context;
    int64_t first, end = row_range(&w->matrix, chunk, &first), columns = w->matrix.columns;
    float *mean = w->moments + chunk * 2 * columns, *m2 = mean + columns;
    const float inverse = 1 / (float)(end - first);
    memset(mean, 0, (size_t)(2 * columns) * sizeof(float));
    for (int64_t row = first; row < end; row++)
        ROW_MAP(mean, columns, ROW_AT(mean) + ROW_AT(w->x + row * columns));
    ROW_MAP(mean, columns, ROW_AT(mean) * inverse);
    for (int64_t row = first; row < end; row++) {
        const float *x = w->x + row * columns;
        ROW_MAP(m2, columns, ROW_AT(m2) + (ROW_AT(x) - ROW_AT(mean)) * (ROW_AT(x) - ROW_AT(mean)));
    }
}

/* Rows of chunks [chunk, chunk + span). */
static int64_t rows_of(const row_matrix *m, int64_t chunk, int64_t span)
{
    int64_t first = chunk * m->rows_per_piece, end = (chunk + span) * m->rows_per_piece;
    return (end < m->rows ? end : m->rows) - first;
}

static void join(const batch_work *w, int64_t a, int64_t b, int64_t span)
{
    int64_t columns = w->matrix.columns;
    float *mean_a = w->moments + a * 2 * columns, *mean_b = w->moments + b * 2 * columns;
    float *m2_a = mean_a + columns, *m2_b = mean_b + columns;
    float count_a = (float)rows_of(&w->matrix, a, span),
          count_b = (float)rows_of(&w->matrix, b, span);
    const float part = count_b / (count_a + count_b), product = count_a * part;
#define D (ROW_AT(mean_b) - ROW_AT(mean_a))
    ROW_MAP(m2_a, columns, ROW_AT(m2_a) + ROW_AT(m2_b) + D * D * product);
    ROW_MAP(mean_a, columns, ROW_AT(mean_a) + D * part);
#undef D
}

static void normalise(void *context, int64_t chunk)
{
    const batch_work *w = context;
    int64_t first, end = row_range(&w->matrix, chunk, &first), columns = w->matrix.columns;
    for (int64_t row = first; row < end; row++)
        ROW_MAP(w->y + row * columns, columns,
                (ROW_AT(w->x + row * columns) - ROW_AT(w->mean)) * ROW_AT(w->factor) +
                    ROW_AT(w->offset));
}

static int score(const tutti_kernel_query *query)
{
    return row_floats(query, ~0u) && tutti_type_count(&query->node.inputs[0]) > 0 ? 100 : 0;
}

/* Moments of the chunks, then the factors of the columns. */
static size_t workspace(const tutti_kernel_query *query)
{
    row_matrix m = norm_chunks_of_type(&query->node.inputs[0]);
    return (size_t)((2 * m.pieces + 1) * m.columns) * sizeof(float);
}

static tutti_status run(const tutti_call *call)
{
    batch_work w = {.x = call->inputs[0].data,
                    .scale = call->inputs[1].data,
                    .offset = call->inputs[2].data,
                    .y = call->outputs[0].data,
                    .mean = call->outputs[1].data,
                    .variance = call->outputs[2].data,
                    .moments = call->workspace,
                    .matrix = norm_chunks(&call->inputs[0])};
    int64_t columns = w.matrix.columns, chunks = w.matrix.pieces;
    float epsilon = (float)tutti__call_float(call, "epsilon");
    w.factor = w.moments + 2 * chunks * columns;
    tutti_parallel(call, chunks, chunk_moments, &w);
    for (int64_t span = 1; span < chunks; span *= 2)
        for (int64_t c = 0; c + span < chunks; c += 2 * span)
            join(&w, c, c + span, span);
    for (int64_t c = 0; c < columns; c++) {
        w.mean[c] = w.moments[c];
        w.variance[c] = w.moments[columns + c] / (float)w.matrix.rows;
        w.factor[c] = w.scale[c] / sqrtf(w.variance[c] + epsilon);
    }
    tutti_parallel(call, chunks, normalise, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_batch_norm) = {
    .name = "batch_norm.rows",
    .version = 1,
    .op = "batch_norm",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .inplace = 1,
    .score = score,
    .workspace = workspace,
    .run = run,
};
