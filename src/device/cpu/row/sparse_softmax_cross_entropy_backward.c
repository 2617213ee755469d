/* sparse_softmax_cross_entropy_backward.c: dlogits = (softmax(logits) - one_hot(label)) grad. */
#include "device/cpu/row/loss.h"

static void run_row(const loss_work *w, int64_t row)
{
    int64_t columns = w->matrix.columns, label = loss_label(w, row);
    const float *x = w->logits + row * columns;
    float *y = w->y + row * columns, sum;
    bool given = w->call->input_count > LOSS_GRAD;
    const float grad = given ? ((const float *)w->call->inputs[LOSS_GRAD].data)[row] : 1;
    const float most = row_max(x, columns);
    ROW_MAP(y, columns, vec_exp(ROW_AT(x) - most));
    ROW_SUM(sum, columns, ROW_AT(y));
    float chosen = (y[label] / sum - 1) * grad;
    const float scale = grad / sum;
    ROW_MAP(y, columns, ROW_AT(y) * scale);
    y[label] = chosen;
}

static void sparse_softmax_cross_entropy_backward_run_piece(void *context, int64_t piece)
{
    const loss_work *w = context;
    int64_t first, end = row_range(&w->matrix, piece, &first);
    for (int64_t row = first; row < end; row++)
        run_row(w, row);
}

static int sparse_softmax_cross_entropy_backward_score(const tutti_kernel_query *query)
{
    return row_floats(query, 1u << LOSS_LOGITS | 1u << LOSS_GRAD) ? 100 : 0;
}

static tutti_status sparse_softmax_cross_entropy_backward_run(const tutti_kernel_call *call)
{
    loss_work w = loss_start(call);
    TUTTI_TRY(loss_check_labels(&w));
    tutti_parallel(call, w.matrix.pieces, sparse_softmax_cross_entropy_backward_run_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_sparse_softmax_cross_entropy_backward) = {
    .name = "sparse_softmax_cross_entropy_backward.rows",
    .version = 1,
    .op = "sparse_softmax_cross_entropy_backward",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = 1,
    .score = sparse_softmax_cross_entropy_backward_score,
    .run = sparse_softmax_cross_entropy_backward_run,
};
