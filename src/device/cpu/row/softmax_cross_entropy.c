/* softmax_cross_entropy.c: y = sum(labels (log(sum(e^logits)) - logits)), row by row. A label of 0
 * adds nothing, also where the logit is -inf. */
#include "device/cpu/row/loss.h"

static void softmax_cross_entropy_run_piece(void *context, int64_t piece)
{
    const loss_work *w = context;
    int64_t first, end = row_range(&w->matrix, piece, &first), columns = w->matrix.columns;
    const float *labels = w->call->inputs[LOSS_LABELS].data;
    for (int64_t row = first; row < end; row++) {
        const float *x = w->logits + row * columns, *z = labels + row * columns;
        float loss, most;
        const float rest = loss_log_sum(x, columns, &most);
        ROW_SUM(loss, columns,
                vec_select(vec_eq(ROW_AT(z), S(0.0f)), S(0.0f),
                           ROW_AT(z) * ((most - ROW_AT(x)) + rest)));
        w->y[row] = loss;
    }
}

static int softmax_cross_entropy_score(const tutti_kernel_query *query)
{
    return row_floats(query, 1u << LOSS_LOGITS | 1u << LOSS_LABELS) ? 100 : 0;
}

static tutti_status softmax_cross_entropy_run(const tutti_kernel_call *call)
{
    loss_work w = loss_start(call);
    if (w.matrix.columns == 0) /* no classes: a sum of nothing */
        memset(w.y, 0, (size_t)tutti_view_count(&call->outputs[0]) * sizeof *w.y);
    tutti_parallel(call, w.matrix.pieces, softmax_cross_entropy_run_piece, &w);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_softmax_cross_entropy) = {
    .name = "softmax_cross_entropy.rows",
    .version = 1,
    .op = "softmax_cross_entropy",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .score = softmax_cross_entropy_score,
    .run = softmax_cross_entropy_run,
};
