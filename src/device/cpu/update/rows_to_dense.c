/* rows_to_dense.c: y = 0, but y[indices[i]] += rows[i]: rows are sorted by index, so that every row
 * of y is written once, the empty ones before an index with it. Short ones are added where they
 * belong as they come, which is the same order for each sum: sorting would take longer. */
#include <string.h>

#include "base/isa.h"
#include "ops/update/update.h"
#include "program/kernel.h"
#include "tensor/dtype.h"

enum {
    PIECE = 64, /* rows in order of their index */
    SHORT = 8,  /* elements of a row that is not worth sorting */
    RUN = 512   /* indices read at once */
};

typedef struct work {
    const tutti_row_groups *groups;
    const float *rows;
    float *out;
    int64_t size, out_rows;
} work;

static void add_row(float *restrict to, const float *restrict from, int64_t size)
{
    for (int64_t i = 0; i < size; i++)
        to[i] += from[i];
}

static void clear(const work *w, int64_t first, int64_t end)
{
    if (first < end)
        memset(w->out + first * w->size, 0, (size_t)((end - first) * w->size) * sizeof(float));
}

/* A group belongs to the piece in which it begins; empty rows to the group behind them. */
static void rows_to_dense_piece(void *context, int64_t index)
{
    const work *w = context;
    const tutti_row_groups *groups = w->groups;
    int64_t at = index * PIECE, stop = at + PIECE < groups->count ? at + PIECE : groups->count;
    if (at > 0 && groups->index[at] == groups->index[at - 1])
        at = tutti__row_groups_next(groups, at);
    while (at < stop) {
        int64_t next = tutti__row_groups_next(groups, at), row = groups->index[at];
        float *sum = w->out + row * w->size;
        clear(w, at > 0 ? groups->index[at - 1] + 1 : 0, row);
        memcpy(sum, w->rows + groups->order[at] * w->size, (size_t)w->size * sizeof(float));
        for (int64_t r = at + 1; r < next; r++)
            add_row(sum, w->rows + groups->order[r] * w->size, w->size);
        if (next == groups->count)
            clear(w, row + 1, w->out_rows);
        at = next;
    }
}

static void add_short(const work *w, const tutti_view *indices, int64_t count)
{
    int64_t at[RUN];
    clear(w, 0, w->out_rows);
    for (int64_t first = 0; first < count; first += RUN) {
        int64_t run = count - first < RUN ? count - first : RUN;
        tutti__elements_to_ints(indices->dtype,
                                (const char *)indices->data +
                                    first * (int64_t)tutti_dtype_size(indices->dtype),
                                run, at);
        for (int64_t i = 0; i < run; i++)
            for (int64_t k = 0; k < w->size; k++)
                w->out[at[i] * w->size + k] += w->rows[(first + i) * w->size + k];
    }
}

static int rows_to_dense_score(const tutti_kernel_query *query)
{
    return query->node.inputs[0].dtype == TUTTI_F32 ? 100 : 0;
}

static size_t rows_to_dense_workspace(const tutti_kernel_query *query)
{
    int64_t count = 1;
    for (int i = 0; i < query->node.inputs[1].rank; i++)
        count *= query->node.inputs[1].dims[i];
    return tutti__row_groups_bytes(count);
}

static tutti_status rows_to_dense_run(const tutti_kernel_call *call)
{
    tutti_row_groups groups;
    const tutti_view *out = &call->outputs[0], *indices = &call->inputs[1];
    work w = {.groups = &groups,
              .rows = call->inputs[0].data,
              .out = out->data,
              .size = out->dims[0] > 0 ? tutti_view_count(out) / out->dims[0] : 0,
              .out_rows = out->dims[0]};
    if (w.size < SHORT) {
        TUTTI_TRY(tutti__check_indices(call, indices, w.out_rows));
        add_short(&w, indices, tutti_view_count(indices));
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti__row_groups_in(call, indices, w.out_rows, call->workspace, &groups));
    if (groups.count == 0)
        clear(&w, 0, w.out_rows);
    else
        tutti_parallel(call, (groups.count + PIECE - 1) / PIECE, rows_to_dense_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_rows_to_dense_pass) = {
    .name = "rows_to_dense.pass",
    .version = 2,
    .op = "rows_to_dense",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .score = rows_to_dense_score,
    .workspace = rows_to_dense_workspace,
    .run = rows_to_dense_run,
};
