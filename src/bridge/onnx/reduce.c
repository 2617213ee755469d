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
    bool keep = NODE_INT(x, "keepdims") != 0;
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
    const char *sum = reduced(x, "ReduceSum", numbers, count, axes, NODE_INT(x, "keepdims") != 0);
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
                    reduced(x, "ReduceMean", square, count, axes, NODE_INT(x, "keepdims") != 0));
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

typedef struct reduction {
    const tutti_axes *axes;
    bool keep;
} reduction;

/* Of bools the largest is whether some are true, the smallest whether all are. */
static const char *op_for(const char *type, tutti_dtype dtype)
{
    static const char *const ops[][2] = {
        {"ReduceSum", "sum"},   {"ReduceMean", "mean"}, {"ReduceMax", "max"},
        {"ReduceMin", "min"},   {"ReduceProd", "prod"}, {"ReduceLogSumExp", "logsumexp"},
        {"ReduceL1", "sum"},    {"ReduceL2", "norm"},   {"ReduceSumSquare", "sum"},
        {"ReduceLogSum", "sum"}};
    if (dtype == TUTTI_BOOL)
        return strcmp(type, "ReduceMax") == 0 ? "any" : "all";
    for (size_t i = 0; i < TUTTI_COUNT(ops); i++)
        if (strcmp(ops[i][0], type) == 0)
            return ops[i][1];
    return "sum";
}

/* Integers have no norm, mean or logarithm of ours: through f64. */
static tutti_sym reduce_apply(tutti_onnx_import *m, tutti_sym x, const reduction *r)
{
    const char *type = m->rule->type;
    tutti_dtype dtype = tutti_sym_type(x).dtype;
    const char *op = op_for(type, dtype);
    bool through = tutti_dtype_is_int(dtype) && strcmp(op, "sum") != 0 && strcmp(op, "max") != 0 &&
                   strcmp(op, "min") != 0 && strcmp(op, "prod") != 0;
    tutti_attr attrs[] = {TUTTI_INTS("axes", r->axes->count, r->axes->values),
                          TUTTI_INT("keepdims", r->keep)};
    x = through || strcmp(type, "ReduceLogSum") == 0
            ? (tutti_dtype_is_int(dtype) ? tutti_cast(x, TUTTI_F64) : x)
            : x;
    if (strcmp(type, "ReduceSumSquare") == 0)
        x = tutti_square(x);
    if (strcmp(type, "ReduceL1") == 0)
        x = tutti_abs(x);
    tutti_sym y = tutti_apply_op(m->graph, op, 1, &x, 2, attrs);
    if (strcmp(type, "ReduceLogSum") == 0)
        y = tutti_log(y);
    return tutti_sym_ok(y) && tutti_sym_type(y).dtype != dtype ? tutti_cast(y, dtype) : y;
}

/* Over no axes, what is left of the operator is a function of each element. */
static tutti_sym each_alone(tutti_onnx_import *m, tutti_sym x)
{
    const char *type = m->rule->type;
    tutti_dtype dtype = tutti_sym_type(x).dtype;
    if (strcmp(type, "ReduceSumSquare") == 0)
        return tutti_square(x);
    if (strcmp(type, "ReduceL1") == 0 || strcmp(type, "ReduceL2") == 0)
        return tutti_abs(x);
    if (strcmp(type, "ReduceLogSum") == 0)
        return tutti_dtype_is_int(dtype) ? tutti_cast(tutti_log(tutti_cast(x, TUTTI_F64)), dtype)
                                         : tutti_log(x);
    return tutti_identity(x);
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
        tutti__onnx_made(m, 0, each_alone(m, x));
        return;
    }
    for (int i = 0; last && i < axes.count; i++)
        axes.values[i]--;
    if (axes.count == 0 && tutti_sym_type(x).rank == 0)
        keep = false;
    tutti__onnx_made_as(m, 0, reduce_apply(m, x, &(reduction){&axes, keep}), last && keep);
}

/* The last of equal ones is the first from the end. */
static void read_position(tutti_onnx_import *m)
{
    int axis = tutti__onnx_attr_axis(m, "axis", 0);
    tutti_sym x = tutti__onnx_sym(m, 0);
    bool largest = strcmp(m->rule->op, "argmax") == 0;
    bool final = tutti__onnx_attr_int(m, "select_last_index", 0) != 0;
    if (!x.node)
        return;
    tutti_sym line = final ? (tutti_reverse)(x, 1, (int64_t[]){axis}) : x;
    tutti_sym y = largest ? tutti_argmax(line, axis) : tutti_argmin(line, axis);
    if (final)
        y = tutti_sub(tutti_add(tutti_size(x, axis), -1), y);
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
    else {
        tutti_cumsum_options o = {.struct_size = sizeof o,
                                  .exclusive = tutti__onnx_attr_int(m, "exclusive", 0) != 0,
                                  .reverse = tutti__onnx_attr_int(m, "reverse", 0) != 0};
        bool sum = strcmp(m->rule->type, "CumSum") == 0;
        tutti__onnx_made(
            m, 0, sum ? tutti_cumsum_with(x, (int)axis, &o) : tutti_cumprod_with(x, (int)axis, &o));
    }
}

/* The order turned round, and turned back by the same: -x; of integers, whose lowest has no
 * negative, -1 - x, or 255 - x where there is no sign. */
static tutti_sym turned(tutti_sym x)
{
    tutti_dtype dtype = tutti_sym_type(x).dtype;
    return tutti_dtype_is_float(dtype) ? tutti_neg(x) : tutti_sub(dtype == TUTTI_U8 ? 255 : -1, x);
}

static void read_top_k(tutti_onnx_import *m)
{
    int64_t k = tutti__onnx_attr_int(m, "k", 1);
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (!x.node || !tutti__onnx_read_int(m, 1, k, &k))
        return;
    int rank = tutti_sym_type(x).rank, axis = tutti__onnx_attr_axis(m, "axis", -1);
    bool largest = tutti__onnx_attr_int(m, "largest", 1) != 0;
    int64_t order[TUTTI_MAX_RANK];
    axis += axis < 0 ? rank : 0;
    for (int i = 0; i < rank; i++)
        order[i] = i == axis ? rank - 1 : i == rank - 1 ? axis : i;
    x = axis == rank - 1 ? x : (tutti_transpose)(x, rank, order);
    tutti_sym y = tutti_top_k(largest ? x : turned(x), k);
    if (!y.node)
        return;
    tutti_sym values = largest ? y : turned(y);
    tutti_sym places = tutti_cast(tutti_sym_output(y, 1), TUTTI_I64);
    tutti__onnx_made(m, 0, axis == rank - 1 ? values : (tutti_transpose)(values, rank, order));
    tutti__onnx_made(m, 1, axis == rank - 1 ? places : (tutti_transpose)(places, rank, order));
}

/* The mean of any number of inputs. */
static void read_mean(tutti_onnx_import *m)
{
    size_t count = m->node->inputs.count;
    tutti_sym y = tutti__onnx_sym(m, 0);
    for (size_t i = 1; i < count && m->status == TUTTI_OK; i++)
        y = tutti_add(y, tutti__onnx_sym(m, (int)i));
    if (m->status == TUTTI_OK)
        tutti__onnx_made(m, 0, tutti_mul(y, 1.0 / (double)count));
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

const tutti_onnx_op tutti_onnx_cumprod = {
    .type = "CumProd",
    .read = read_cumsum,
};

const tutti_onnx_op tutti_onnx_top_k = {
    .op = "top_k",
    .type = "TopK",
    .write = write_top_k,
    .read = read_top_k,
};

const tutti_onnx_op tutti_onnx_reduce_sum_square = {
    .type = "ReduceSumSquare",
    .read = read_reduce,
};

const tutti_onnx_op tutti_onnx_reduce_log_sum = {
    .type = "ReduceLogSum",
    .read = read_reduce,
};

const tutti_onnx_op tutti_onnx_mean_of_many = {
    .type = "Mean",
    .read = read_mean,
};
