/* reduce.c: one number of many; running sums; the largest. */
#include "bridge/onnx.h"

#include <string.h>

/* ---- writing ---- */

/* From opset 18 on axes are an input everywhere, before only for ReduceSum. */
static const char *reduced(tutti_onnx_export *x, const char *type, const char *name, int count,
                           const int64_t *axes, bool keep)
{
    bool input = x->onnx->opset >= 18 || strcmp(type, "ReduceSum") == 0;
    const char *list = input && count > 0 ? tutti__onnx_ints(x, count, axes) : "";
    const char *y = ONNX(x, type, name, list);
    if (!input && count > 0)
        tutti__onnx_set_ints(x, "axes", count, axes);
    tutti__onnx_set_int(x, "keepdims", keep);
    return y;
}

/* Whether the axes are all but batch and channels. */
static bool all_between(int rank, int count, const int64_t *axes)
{
    bool named[TUTTI_MAX_RANK] = {false};
    for (int i = 0; i < count; i++)
        named[axes[i] < 0 ? axes[i] + rank : axes[i]] = true;
    for (int i = 0; i < rank; i++)
        if (named[i] != (i > 0 && i < rank - 1))
            return false;
    return true;
}

static void write_as(tutti_onnx_export *x, const char *type)
{
    const int64_t *axes;
    int64_t between[TUTTI_MAX_RANK];
    int count = NODE_INTS(x, "axes", &axes), rank = tutti__onnx_type_in(x, 0)->rank;
    bool keep = NODE_INT(x, "keep_dims") != 0;
    tutti_edge edge = x->node->inputs[0];
    const tutti_onnx_edge *e = &x->edges[x->start[edge.node->id] + edge.index];
    if (!e->first || e->plain || rank < 3 || !all_between(rank, count, axes)) {
        tutti__onnx_out(x, 0, reduced(x, type, tutti__onnx_in(x, 0), count, axes, keep));
        return;
    }
    for (int i = 0; i < count; i++)
        between[i] = 2 + i;
    tutti__onnx_out_as(x, 0, reduced(x, type, e->first, count, between, keep), keep);
}

static void write_reduce(tutti_onnx_export *x)
{
    write_as(x, x->rule->type);
}

static void write_norm(tutti_onnx_export *x)
{
    write_as(x, NODE_INT(x, "ord") == 1 ? "ReduceL1" : "ReduceL2");
}

/* Whether some are true: their number is not 0. */
static const char *some(tutti_onnx_export *x, const char *bools)
{
    const int64_t *axes;
    int count = NODE_INTS(x, "axes", &axes);
    const char *numbers = tutti__onnx_cast(x, bools, TUTTI_I32);
    const char *sum = reduced(x, "ReduceSum", numbers, count, axes, NODE_INT(x, "keep_dims") != 0);
    return tutti__onnx_cast(x, sum, TUTTI_BOOL);
}

static void write_any(tutti_onnx_export *x)
{
    tutti__onnx_out(x, 0, some(x, tutti__onnx_in(x, 0)));
}

/* None is false. */
static void write_all(tutti_onnx_export *x)
{
    tutti__onnx_out(x, 0, ONNX(x, "Not", some(x, ONNX(x, "Not", tutti__onnx_in(x, 0)))));
}

static void write_variance(tutti_onnx_export *x)
{
    const int64_t *axes;
    int count = NODE_INTS(x, "axes", &axes);
    const char *a = tutti__onnx_in(x, 0);
    const char *far = ONNX(x, "Sub", a, reduced(x, "ReduceMean", a, count, axes, true));
    const char *square = ONNX(x, "Mul", far, far);
    tutti__onnx_out(x, 0,
                    reduced(x, "ReduceMean", square, count, axes, NODE_INT(x, "keep_dims") != 0));
}

static void write_position(tutti_onnx_export *x)
{
    const char *y = ONNX(x, x->rule->type, tutti__onnx_in(x, 0));
    tutti__onnx_set_int(x, "axis", NODE_INT(x, "axis"));
    tutti__onnx_set_int(x, "keepdims", 0);
    tutti__onnx_out(x, 0, y);
}

static void write_cumsum(tutti_onnx_export *x)
{
    const char *axis = tutti__onnx_number(x, TUTTI_I64, (double)NODE_INT(x, "axis"));
    const char *y = ONNX(x, "CumSum", tutti__onnx_in(x, 0), axis);
    tutti__onnx_set_int(x, "exclusive", NODE_INT(x, "exclusive"));
    tutti__onnx_set_int(x, "reverse", NODE_INT(x, "reverse"));
    tutti__onnx_out(x, 0, y);
}

static void write_top_k(tutti_onnx_export *x)
{
    int64_t k[1] = {NODE_INT(x, "k")};
    const char *y = ONNX(x, "TopK", tutti__onnx_in(x, 0), tutti__onnx_ints(x, 1, k));
    tutti__onnx_set_int(x, "axis", -1);
    const char *places = tutti__onnx_more(x);
    tutti__onnx_out(x, 0, y);
    if (tutti__onnx_wants(x, 1))
        tutti__onnx_out(x, 1, tutti__onnx_cast(x, places, TUTTI_I32));
}

/* ---- reading ---- */

/* An operator of ours over axes. */
static tutti_sym apply(tutti_onnx_import *m, const char *op, tutti_sym x, const tutti_axes *axes,
                       bool keep)
{
    tutti_attr attrs[] = {TUTTI_INTS("axes", axes->count, axes->values),
                          TUTTI_INT("keep_dims", keep), TUTTI_INT("ord", 1)};
    bool l1 = strcmp(m->rule->type, "ReduceL1") == 0;
    return tutti_apply_op(m->graph, op, 1, &x, l1 ? 3 : 2, attrs);
}

static void read_reduce(tutti_onnx_import *m)
{
    tutti_axes axes;
    bool keep = tutti__onnx_attr_int(m, "keepdims", 1) != 0;
    const tutti_onnx_known *known = tutti__onnx_input(m, 0);
    if (!known || !tutti__onnx_read_axes(m, 1, "axes", &axes)) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "its input is missing");
        return;
    }
    bool last = known->last.node && !known->plain.node && axes.count > 0;
    int rank = last ? tutti_sym_type(known->last).rank : 0;
    for (int i = 0; last && i < axes.count; i++) {
        axes.values[i] += axes.values[i] < 0 ? rank : 0;
        last = axes.values[i] >= 2 && axes.count == rank - 2;
    }
    tutti_sym x = last ? known->last : tutti__onnx_sym(m, 0);
    if (!x.node)
        return;
    if (axes.count == 0 && tutti__onnx_attr_int(m, "noop_with_empty_axes", 0)) {
        tutti__onnx_made(m, 0, tutti_identity(x));
        return;
    }
    for (int i = 0; last && i < axes.count; i++)
        axes.values[i]--;
    const char *op = m->rule->op ? m->rule->op : "norm";
    tutti__onnx_made_as(m, 0, apply(m, op, x, &axes, keep), last && keep);
}

static void read_position(tutti_onnx_import *m)
{
    int axis = tutti__onnx_attr_axis(m, "axis", 0);
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (tutti__onnx_attr_int(m, "select_last_index", 0)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "select_last_index is not supported");
        return;
    }
    tutti_sym y =
        strcmp(m->rule->op, "argmax") == 0 ? tutti_argmax(x, axis) : tutti_argmin(x, axis);
    tutti__onnx_made(m, 0, tutti__onnx_attr_int(m, "keepdims", 1) ? tutti_expand_dims(y, axis) : y);
}

static void read_cumsum(tutti_onnx_import *m)
{
    int64_t axis;
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (!tutti__onnx_read_int(m, 1, 0, &axis))
        return;
    if (axis < -TUTTI_MAX_RANK || axis > TUTTI_MAX_RANK)
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "axis %lld is not there", (long long)axis);
    else
        tutti__onnx_made(m, 0,
                         tutti_cumsum(x, (int)axis,
                                      .exclusive = tutti__onnx_attr_int(m, "exclusive", 0) != 0,
                                      .reverse = tutti__onnx_attr_int(m, "reverse", 0) != 0));
}

static void read_top_k(tutti_onnx_import *m)
{
    int64_t k;
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (!x.node || !tutti__onnx_read_int(m, 1, 1, &k))
        return;
    int64_t axis = tutti__onnx_attr_int(m, "axis", -1), rank = tutti_sym_type(x).rank;
    if (!tutti__onnx_attr_int(m, "largest", 1) || (axis != -1 && axis != rank - 1)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "only the largest along the last axis");
        return;
    }
    tutti_sym y = tutti_top_k(x, k);
    tutti__onnx_made(m, 0, y);
    if (tutti__onnx_names(m, 1) && y.node)
        tutti__onnx_made(m, 1, tutti_cast(tutti_output_of(y, 1), TUTTI_I64));
}

const tutti_onnx_op tutti_onnx_reduce_sum = {
    .op = "sum",
    .type = "ReduceSum",
    .write = write_reduce,
    .read = read_reduce,
};

const tutti_onnx_op tutti_onnx_reduce_mean = {
    .op = "mean",
    .type = "ReduceMean",
    .write = write_reduce,
    .read = read_reduce,
};

const tutti_onnx_op tutti_onnx_reduce_max = {
    .op = "max",
    .type = "ReduceMax",
    .write = write_reduce,
    .read = read_reduce,
};

const tutti_onnx_op tutti_onnx_reduce_min = {
    .op = "min",
    .type = "ReduceMin",
    .write = write_reduce,
    .read = read_reduce,
};

const tutti_onnx_op tutti_onnx_reduce_prod = {
    .op = "prod",
    .type = "ReduceProd",
    .write = write_reduce,
    .read = read_reduce,
};

const tutti_onnx_op tutti_onnx_reduce_logsumexp = {
    .op = "logsumexp",
    .type = "ReduceLogSumExp",
    .write = write_reduce,
    .read = read_reduce,
};

const tutti_onnx_op tutti_onnx_norm_l2 = {
    .op = "norm",
    .type = "ReduceL2",
    .write = write_norm,
    .read = read_reduce,
};

const tutti_onnx_op tutti_onnx_norm_l1 = {
    .type = "ReduceL1",
    .read = read_reduce,
};

const tutti_onnx_op tutti_onnx_any = {
    .op = "any",
    .write = write_any,
};

const tutti_onnx_op tutti_onnx_all = {
    .op = "all",
    .write = write_all,
};

const tutti_onnx_op tutti_onnx_variance = {
    .op = "variance",
    .write = write_variance,
};

const tutti_onnx_op tutti_onnx_argmax = {
    .op = "argmax",
    .type = "ArgMax",
    .write = write_position,
    .read = read_position,
};

const tutti_onnx_op tutti_onnx_argmin = {
    .op = "argmin",
    .type = "ArgMin",
    .write = write_position,
    .read = read_position,
};

const tutti_onnx_op tutti_onnx_cumsum = {
    .op = "cumsum",
    .type = "CumSum",
    .write = write_cumsum,
    .read = read_cumsum,
};

const tutti_onnx_op tutti_onnx_top_k = {
    .op = "top_k",
    .type = "TopK",
    .write = write_top_k,
    .read = read_top_k,
};
