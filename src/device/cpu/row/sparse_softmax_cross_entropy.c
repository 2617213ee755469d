/* sparse_softmax_cross_entropy.c: y = log(sum(e^logits)) - logits[label], row by row. */
#include "device/cpu/row/loss.h"

static void sparse_softmax_cross_entropy_run_piece(void *context, int64_t piece)
{
    const loss_work *w = context;
    int64_t first, end = row_range(&w->matrix, piece, &first);
    for (int64_t row = first; row < end; row++) {
        const float *x = w->logits + row * w->matrix.columns;
        float most, rest = loss_log_sum(x, w->matrix.columns, &most);
        w->y[row] = (most - x[loss_label(w, row)]) + rest;
    }
}

static int sparse_softmax_cross_entropy_score(const tutti_kernel_query *query)
{
    return row_floats(query, 1u << LOSS_LOGITS) ? 100 : 0;
}

static tutti_status sparse_softmax_cross_entropy_run(const tutti_kernel_call *call)
{
    loss_work w = loss_start(call);
    TUTTI_TRY(loss_check_labels(&w));
    tutti_parallel(call, w.matrix.pieces, sparse_softmax_cross_entropy_run_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_sparse_softmax_cross_entropy) = {
    .name = "sparse_softmax_cross_entropy.rows",
    .version = 1,
    .op = "sparse_softmax_cross_entropy",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = sparse_softmax_cross_entropy_score,
    .run = sparse_softmax_cross_entropy_run,
};
