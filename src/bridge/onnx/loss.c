/* loss.c: losses over classes, which stand on axis 1. */
#include "bridge/onnx.h"

#include <string.h>

typedef struct loss {
    tutti_sym chances; /* log of them, classes last: [batch, …, classes] */
    tutti_sym labels;  /* [batch, …] of i64 */
    int weight;        /* the input that weighs classes */
} loss;

/* Axis 1 becomes the last. */
static tutti_sym classes_last(tutti_sym x)
{
    int rank = tutti_sym_type(x).rank;
    int64_t order[TUTTI_MAX_RANK];
    if (rank < 3)
        return x;
    for (int i = 0; i < rank; i++)
        order[i] = i == 0 ? 0 : i == rank - 1 ? 1 : i + 1;
    return (tutti_transpose)(x, rank, order);
}

/* -weight[label] log p[label], 0 where the label is to be ignored; "mean" divides by the weights.
 */
static tutti_sym reduced_loss(tutti_onnx_import *m, const loss *l)
{
    const char *reduction = tutti__onnx_attr_string(m, "reduction", "mean");
    const tutti_onnx_attr *ignored = tutti__onnx_attr(m->node, "ignore_index", ONNX_INT);
    tutti_sym labels = l->labels, scale = TUTTI_NO_SYM;
    if (ignored) {
        tutti_sym keep = tutti_not_equal(labels, (double)ignored->i);
        labels = tutti_where(keep, labels, 0);
        scale = tutti_cast(keep, tutti_sym_type(l->chances).dtype);
    }
    if (tutti__onnx_has(m, l->weight)) {
        tutti_sym w = tutti_gather(tutti__onnx_sym(m, l->weight), labels, 0);
        scale = scale.node ? tutti_mul(scale, w) : w;
    }
    tutti_sym picked =
        tutti_squeeze(tutti_take_along(l->chances, tutti_expand_dims(labels, -1), -1), -1);
    tutti_sym each = tutti_neg(scale.node ? tutti_mul(picked, scale) : picked);
    if (strcmp(reduction, "none") == 0)
        return each;
    if (strcmp(reduction, "sum") == 0)
        return tutti_sum(each);
    return scale.node ? tutti_div(tutti_sum(each), tutti_sum(scale)) : tutti_mean(each);
}

static void read_nll(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), labels = tutti__onnx_sym(m, 1);
    if (!x.node || !labels.node)
        return;
    loss l = {classes_last(x), tutti_cast(labels, TUTTI_I64), 2};
    tutti__onnx_made(m, 0, reduced_loss(m, &l));
}

static void read_cross_entropy(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), labels = tutti__onnx_sym(m, 1);
    if (!x.node || !labels.node)
        return;
    loss l = {tutti_log_softmax(classes_last(x)), tutti_cast(labels, TUTTI_I64), 2};
    tutti__onnx_made(m, 0, reduced_loss(m, &l));
    if (tutti__onnx_names(m, 1))
        tutti__onnx_made(m, 1, tutti_log_softmax(x, .axes = TUTTI_AXES(1)));
}

const tutti_onnx_op tutti_onnx_nll_loss = {
    .type = "NegativeLogLikelihoodLoss",
    .read = read_nll,
};

const tutti_onnx_op tutti_onnx_cross_entropy_loss = {
    .type = "SoftmaxCrossEntropyLoss",
    .read = read_cross_entropy,
};
