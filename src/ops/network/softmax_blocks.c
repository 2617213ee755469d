/* softmax_blocks.c: softmax and cross-entropies of rows whose classes are split over ranks: each
 * rank has the exponentials of its block, and the ranks exchange a maximum and sums of each row. */
#include "ops/network/softmax.h"

/* Along one axis, which stays with length 1 in `sum`. */
typedef struct parts {
    tutti_sym shifted;      /* x - max(x) */
    tutti_sym exponentials; /* of these */
    tutti_sym sum;          /* of those */
} parts;

static parts parts_of(tutti_sym x, int axis)
{
    parts p;
    x = tutti__widened(x);
    p.shifted = tutti_sub(x, tutti_max(x, .axes = TUTTI_AXES(axis), .keepdims = true));
    p.exponentials = tutti_exp(p.shifted);
    p.sum = tutti__sum_keeping(p.exponentials, axis);
    return p;
}

/* Whether what is split is the axis along which the operator looks. */
static bool is_axis(const tutti_expansion *node, int axis, int *ret)
{
    int rank = tutti_sym_type(node->inputs[node->input]).rank;
    *ret = axis + (axis < 0 ? rank : 0);
    return node->dimension == *ret;
}

tutti_status tutti__softmax_expand_on(tutti_expansion *node)
{
    int axis;
    if (!is_axis(node, (int)RULE_INT(node, "axis"), &axis))
        return TUTTI_OK;
    parts p = parts_of(node->inputs[0], axis);
    node->outputs[0] =
        tutti__narrowed(tutti_div(p.exponentials, p.sum), tutti_sym_type(node->inputs[0]).dtype);
    return TUTTI_OK;
}

tutti_status tutti__log_softmax_expand_on(tutti_expansion *node)
{
    int axis;
    if (!is_axis(node, (int)RULE_INT(node, "axis"), &axis))
        return TUTTI_OK;
    parts p = parts_of(node->inputs[0], axis);
    node->outputs[0] = tutti__narrowed(tutti_sub(p.shifted, tutti_log(p.sum)),
                                       tutti_sym_type(node->inputs[0]).dtype);
    return TUTTI_OK;
}

/* Of rows: losses are sums over the classes, which are dropped. */
static tutti_sym sum_classes(tutti_sym x)
{
    return tutti_sum(x, .axes = TUTTI_AXES(-1));
}

tutti_status tutti__softmax_cross_entropy_expand_on(tutti_expansion *node)
{
    int axis;
    if (!is_axis(node, -1, &axis))
        return TUTTI_OK;
    parts p = parts_of(node->inputs[0], axis);
    tutti_sym labels = tutti__widened(node->inputs[1]);
    tutti_sym none = tutti_equal(labels, 0);
    tutti_sym each = tutti_mul(labels, tutti_sub(tutti_log(p.sum), p.shifted));
    node->outputs[0] = tutti__narrowed(sum_classes(tutti_where(none, tutti_zeros_like(each), each)),
                                       tutti_sym_type(node->inputs[0]).dtype);
    return TUTTI_OK;
}

/* Where each row's label is, among all classes. */
static tutti_sym label_places(const tutti_expansion *node)
{
    tutti_type logits = tutti_sym_type(node->inputs[0]);
    tutti_sym classes =
        tutti_range(node->graph, 0, (double)logits.dims[logits.rank - 1], 1, TUTTI_I64);
    return tutti_equal(tutti_expand_dims(tutti_cast(node->inputs[1], TUTTI_I64), -1), classes);
}

/* Adds nothing, and fails where a label is no class. */
static tutti_sym checked(const tutti_expansion *node, tutti_sym rows)
{
    tutti_type logits = tutti_sym_type(node->inputs[0]);
    tutti_sym none =
        tutti_fill(node->graph, tutti_sym_type(rows).dtype, 0, logits.dims[logits.rank - 1]);
    return tutti_add(rows, tutti_gather(none, node->inputs[1], 0));
}

tutti_status tutti__sparse_cross_entropy_expand_on(tutti_expansion *node)
{
    int axis;
    if (node->input != 0 || !is_axis(node, -1, &axis))
        return TUTTI_OK;
    parts p = parts_of(node->inputs[0], axis);
    tutti_sym picked =
        sum_classes(tutti_where(label_places(node), p.shifted, tutti_zeros_like(p.shifted)));
    tutti_sym loss = tutti_sub(tutti_squeeze(tutti_log(p.sum), -1), picked);
    node->outputs[0] = tutti__narrowed(checked(node, loss), tutti_sym_type(node->inputs[0]).dtype);
    return TUTTI_OK;
}

tutti_status tutti__sparse_cross_entropy_backward_expand_on(tutti_expansion *node)
{
    int axis;
    if (node->input != 0 || !is_axis(node, -1, &axis))
        return TUTTI_OK;
    parts p = parts_of(node->inputs[0], axis);
    tutti_sym share = tutti_div(p.exponentials, p.sum);
    tutti_sym difference =
        tutti_sub(share, tutti_cast(label_places(node), tutti_sym_type(share).dtype));
    if (node->input_count > 2)
        difference = tutti_mul(difference, tutti_expand_dims(tutti__widened(node->inputs[2]), -1));
    node->outputs[0] = tutti__narrowed(difference, tutti_sym_type(node->inputs[0]).dtype);
    return TUTTI_OK;
}
