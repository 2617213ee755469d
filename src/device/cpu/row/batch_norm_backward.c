/* batch_norm_backward.c: with xhat = (x - mean) r, r = 1 / sqrt(variance + epsilon), sums over
 * rows: dscale = sum(grad xhat), doffset = sum(grad), dx = scale r (grad - doffset / rows - xhat
 * dscale / rows). */
#include "device/cpu/row/norm.h"

enum { X, SCALE, MEAN, VARIANCE, GRAD };

typedef struct batch_work {
    const float *x, *scale, *mean, *grad;
    float *dx, *r, *partial;
    row_matrix matrix;
} batch_work;

/* A chunk's sums of grad xhat, then of grad. */
static void chunk_sums(void *context, int64_t chunk)
{
    const batch_work *w = context;
    int64_t first, end = row_range(&w->matrix, chunk, &first), columns = w->matrix.columns;
    float *by_scale = w->partial + chunk * 2 * columns, *by_offset = by_scale + columns;
    memset(by_scale, 0, (size_t)(2 * columns) * sizeof(float));
    for (int64_t row = first; row < end; row++) {
        const float *x = w->x + row * columns, *grad = w->grad + row * columns;
        ROW_MAP(by_scale, columns,
                ROW_AT(by_scale) + ROW_AT(grad) * (ROW_AT(x) - ROW_AT(w->mean)) * ROW_AT(w->r));
        ROW_MAP(by_offset, columns, ROW_AT(by_offset) + ROW_AT(grad));
    }
}

static void chunk_dx(void *context, int64_t chunk)
{
    const batch_work *w = context;
    int64_t first, end = row_range(&w->matrix, chunk, &first), columns = w->matrix.columns;
    const float *by_scale = w->partial, *by_offset = w->partial + columns;
    const float inverse = 1 / (float)w->matrix.rows;
    for (int64_t row = first; row < end; row++) {
        const float *x = w->x + row * columns, *grad = w->grad + row * columns;
        ROW_MAP(w->dx + row * columns, columns,
                ROW_AT(w->scale) * ROW_AT(w->r) *
                    (ROW_AT(grad) - (ROW_AT(by_offset) + (ROW_AT(x) - ROW_AT(w->mean)) *
                                                             ROW_AT(w->r) * ROW_AT(by_scale)) *
                                        inverse));
    }
}

static int score(const tutti_kernel_query *query)
{
    return row_floats(query, ~0u) && tutti_type_count(&query->node.inputs[0]) > 0 ? 100 : 0;
}

static size_t workspace(const tutti_kernel_query *query)
{
    row_matrix m = norm_chunks_of_type(&query->node.inputs[0]);
    return (size_t)((2 * m.pieces + 1) * m.columns) * sizeof(float);
}

static tutti_status run(const tutti_call *call)
{
    batch_work w = {.x = call->inputs[X].data,
                    .scale = call->inputs[SCALE].data,
                    .mean = call->inputs[MEAN].data,
                    .grad = call->inputs[GRAD].data,
                    .dx = call->outputs[0].data,
                    .partial = call->workspace,
                    .matrix = norm_chunks(&call->inputs[X])};
    int64_t columns = w.matrix.columns, chunks = w.matrix.pieces;
    float epsilon = (float)tutti__call_float(call, "epsilon");
    const float *variance = call->inputs[VARIANCE].data;
    w.r = w.partial + 2 * chunks * columns;
    for (int64_t c = 0; c < columns; c++)
        w.r[c] = 1 / sqrtf(variance[c] + epsilon);
    tutti_parallel(call, chunks, chunk_sums, &w);
    norm_add_chunks(w.partial, chunks, 2 * columns);
    tutti_parallel(call, chunks, chunk_dx, &w);
    memcpy(call->outputs[1].data, w.partial, (size_t)columns * sizeof(float));
    memcpy(call->outputs[2].data, w.partial + columns, (size_t)columns * sizeof(float));
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_batch_norm_backward) = {
    .name = "batch_norm_backward.rows",
    .version = 1,
    .op = "batch_norm_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = score,
    .workspace = workspace,
    .run = run,
};
