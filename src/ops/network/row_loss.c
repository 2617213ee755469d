/* row_loss.c: what softmax and the losses of rows share; see softmax.h. */
#include "ops/network/softmax.h"

tutti_status tutti__softmax_infer(tutti_infer *node)
{
    int axis;
    TUTTI_TRY(tutti__need_floats(node, 0, 1));
    TUTTI_TRY(tutti__rule_axis(node, RULE_INT(node, "axis"), node->inputs[0].rank, &axis));
    return tutti_infer_same(node);
}

tutti_sym tutti__softmax_along(const tutti_op *op, tutti_sym x, const tutti_axes *axes)
{
    if (!tutti__usable(op->name, x))
        return TUTTI_POISON;
    if (axes->count < 0 || axes->count > 1)
        return tutti__poison(tutti_sym_graph(x), TUTTI_INVALID,
                             "%s: %d axes are named; it takes one", op->name, axes->count);
    tutti_sym inputs[] = {x};
    return TUTTI_NARY(op, inputs, TUTTI_INT("axis", axes->count ? axes->values[0] : -1));
}

tutti_status tutti__softmax_run(const tutti_kernel_call *call, const double *x, double *y,
                                double (*each)(double log_share))
{
    const tutti_view *view = &call->inputs[0];
    int axis = (int)CALL_INT(call, "axis");
    int64_t outer = 1, inner = 1;
    axis += axis < 0 ? view->rank : 0;
    int64_t count = view->dims[axis];
    for (int i = 0; i < view->rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : view->dims[i];
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            int64_t first = o * count * inner + i;
            tutti_log_sum sum = tutti__log_sum_exp(count, inner, x + first);
            if (isinf(sum.highest))
                sum.rest = (double)NAN; /* infinity over infinity, for the whole row */
            for (int64_t k = 0; k < count; k++)
                y[first + k * inner] = each(tutti__log_share(x[first + k * inner], sum));
        }
    return TUTTI_OK;
}

int tutti__softmax_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int64_t softmax_axis = RULE_INT(node, "axis");
    softmax_axis += softmax_axis < 0 ? node->inputs[0].rank : 0;
    for (int axis = 0; axis < node->inputs[0].rank; axis++)
        if (axis != softmax_axis)
            tutti__way_add(&ways, SLOTS(axis), SLOTS(axis));
    return ways.count;
}

tutti_status tutti__row_loss_infer(tutti_infer *node, int last)
{
    char text[TUTTI_TYPE_TEXT];
    tutti_type rows = node->inputs[0];
    if (rows.rank == 0)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "logits are the scalar %s, need a last axis of classes",
                         tutti_type_text(&rows, text));
    rows.rank--;
    rows.handle = false;
    TUTTI_TRY(tutti__need_like(node, 1, "labels", last ? &node->inputs[0] : &rows));
    for (int axis = 0; axis < rows.rank; axis++)
        rows.dims[axis] = tutti__known(rows.dims[axis], node->inputs[1].dims[axis]);
    rows.dims[rows.rank] = 0;
    node->outputs[0] = rows;
    return TUTTI_OK;
}

int tutti__row_loss_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    for (int axis = 0; axis < node->inputs[0].rank - 1; axis++)
        tutti__way_add(&ways, SLOTS(axis, axis, axis), SLOTS(axis));
    return ways.count;
}

void tutti__row_loss_matrix(const tutti_view *logits, int64_t *ret_rows, int64_t *ret_classes)
{
    int64_t rows = 1;
    for (int axis = 0; axis < logits->rank - 1; axis++)
        rows *= logits->dims[axis];
    *ret_rows = rows;
    *ret_classes = logits->dims[logits->rank - 1];
}
