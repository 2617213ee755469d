/* loss_and_gradient.c: cross entropy of rows of logits and its gradient from one softmax: with
 * p = e^(x - max), s = sum(p): loss = max - x[label] + log(s), dx = (p / s - one_hot(label)) grad.
 */
#include <stdlib.h>

#include "device/cpu/row/loss.h"
#include "graph/graph.h"

enum { GRADIENT, LOSS }; /* outputs */

typedef struct both_work {
    loss_work w; /* y: the gradient */
    const float *grad;
    float *loss;
} both_work;

static void run_row(const both_work *b, int64_t row)
{
    int64_t columns = b->w.matrix.columns, label = loss_label(&b->w, row);
    const float *x = b->w.logits + row * columns;
    float *y = b->w.y + row * columns, sum;
    const float grad = b->grad[row], most = row_max(x, columns), right = x[label];
    ROW_MAP(y, columns, vec_exp(ROW_AT(x) - most));
    ROW_SUM(sum, columns, ROW_AT(y));
    float chosen = (y[label] / sum - 1) * grad;
    const float scale = grad / sum;
    ROW_MAP(y, columns, ROW_AT(y) * scale);
    y[label] = chosen;
    /* an infinite or NaN maximum is the loss's log of the sum */
    b->loss[row] = (most - right) + (most - most == 0 ? (float)log((double)sum) : 0);
}

static void loss_and_gradient_run_piece(void *context, int64_t piece)
{
    const both_work *b = context;
    int64_t first, end = row_range(&b->w.matrix, piece, &first);
    for (int64_t row = first; row < end; row++)
        run_row(b, row);
}

/* Whether a body's edge is parameter `index`. */
static bool is_input(tutti_edge edge, int index)
{
    return tutti__is(edge.node, "parameter") && (int)tutti__int(edge.node, "index") == index;
}

static int loss_and_gradient_score(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    const tutti_attr *body = tutti_attr_find(node->attrs, node->attr_count, "body");
    if (strcmp(tutti_attr_string(node->attrs, node->attr_count, "pattern"), "loss_and_gradient") !=
            0 ||
        body == NULL || node->input_count != 3 || node->output_count != 2 ||
        !row_floats(query, 1u << LOSS_LOGITS | 1u << LOSS_GRAD))
        return 0;
    const tutti_edge *results = body->value.graph->results.data;
    if (!tutti__is(results[GRADIENT].node, "sparse_softmax_cross_entropy_backward") ||
        !tutti__is(results[LOSS].node, "sparse_softmax_cross_entropy"))
        return 0;
    for (int i = 0; i < 3; i++)
        if (!is_input(results[GRADIENT].node->inputs[i], i) ||
            (i < 2 && !is_input(results[LOSS].node->inputs[i], i)))
            return 0;
    return 100;
}

static tutti_status loss_and_gradient_run(const tutti_kernel_call *call)
{
    both_work b = {.w = loss_start(call),
                   .grad = call->inputs[LOSS_GRAD].data,
                   .loss = call->outputs[LOSS].data};
    TUTTI_TRY(loss_check_labels(&b.w));
    tutti_parallel(call, b.w.matrix.pieces, loss_and_gradient_run_piece, &b);
    return TUTTI_OK;
}

const tutti_kernel TUTTI_ISA_NAME(tutti_kernel_loss_and_gradient) = {
    .name = "fused.loss_and_gradient",
    .version = 1,
    .op = "fused_checked",
    .target = "cpu",
    .isa = TUTTI_ISA_TEXT,
    .flags = TUTTI_KERNEL_ROW_INVARIANT,
    .inplace = 1,
    .score = loss_and_gradient_score,
    .run = loss_and_gradient_run,
};
