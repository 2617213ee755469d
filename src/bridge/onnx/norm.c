/* norm.c: normalisation and softmax. */
#include "bridge/formulas.h"
#include "bridge/onnx.h"
#include "bridge/onnx/patterns.h"

#include <string.h>

/* ---- writing ---- */

static void write_layer_norm(tutti_onnx_export *x)
{
    const char *y = ONNX(x, "LayerNormalization", tutti__onnx_in(x, 0), tutti__onnx_in(x, 1),
                         tutti__onnx_in(x, 2));
    tutti__onnx_set_int(x, "axis", -1);
    tutti__onnx_set_float(x, "epsilon", NODE_FLOAT(x, "epsilon"));
    tutti__onnx_out(x, 0, y);
}

/* x / sqrt(mean(x^2) + epsilon) * scale */
static void write_rms_norm(tutti_onnx_export *x)
{
    tutti_dtype dtype = x->node->types[0].dtype;
    const char *a = tutti__onnx_in(x, 0), *mean, *square = ONNX(x, "Mul", a, a);
    if (x->onnx->opset >= 18) {
        mean = ONNX(x, "ReduceMean", square, tutti__onnx_ints(x, 1, (int64_t[]){-1}));
    } else {
        mean = ONNX(x, "ReduceMean", square);
        tutti__onnx_set_ints(x, "axes", 1, (int64_t[]){-1});
    }
    tutti__onnx_set_int(x, "keepdims", 1);
    const char *sum = ONNX(x, "Add", mean, tutti__onnx_number(x, dtype, NODE_FLOAT(x, "epsilon")));
    const char *unit = ONNX(x, "Div", a, ONNX(x, "Sqrt", sum));
    tutti__onnx_out(x, 0, ONNX(x, "Mul", unit, tutti__onnx_in(x, 1)));
}

static void write_softmax(tutti_onnx_export *x)
{
    const char *y = ONNX(x, x->rule->type, tutti__onnx_in(x, 0));
    tutti__onnx_set_int(x, "axis", NODE_INT(x, "axis"));
    tutti__onnx_out(x, 0, y);
}

/* The node that makes input i, when it is that operator. */
static const tutti_node *under(const tutti_onnx_export *x, const tutti_node *node, int i,
                               const char *op)
{
    const tutti_node *maker = node ? node->inputs[i].node : NULL;
    return maker && x->needed[maker->id] && tutti__is(maker, op) ? maker : NULL;
}

static bool same_edge(tutti_edge a, tutti_edge b)
{
    return a.node == b.node && a.index == b.index;
}

/* The name of another node's input. */
static const char *name_of(tutti_onnx_export *x, const tutti_node *node, int i, bool first)
{
    const tutti_node *here = x->node;
    x->node = node;
    const char *name = first ? tutti__onnx_in_first(x, i) : tutti__onnx_in(x, i);
    x->node = here;
    return name;
}

static bool is_vector(const tutti_node *node, int i)
{
    return tutti__edge_type(node->inputs[i])->rank == 1;
}

bool tutti__onnx_write_batch_norm(tutti_onnx_export *x)
{
    const tutti_node *scaled = under(x, x->node, 0, "mul"), *rest = under(x, x->node, 1, "sub");
    const tutti_node *factor = under(x, scaled, 1, "mul"), *shift = under(x, rest, 1, "mul");
    const tutti_node *root = under(x, factor, 1, "rsqrt"), *sum = under(x, root, 0, "add");
    tutti_tensor *epsilon;
    const tutti_node *node;
    if (!sum || !shift || !same_edge(scaled->inputs[1], shift->inputs[1]) ||
        tutti__edge_type(scaled->inputs[0])->rank < 2 || !is_vector(factor, 0) ||
        !is_vector(rest, 0) || !is_vector(shift, 0) || !is_vector(sum, 0) ||
        tutti__edge_type(sum->inputs[1])->rank != 0 ||
        !tutti__onnx_value_of(x, sum->inputs[1], &epsilon, &node))
        return false;
    double small = tutti_tensor_get(epsilon, 0);
    tutti_tensor_release(epsilon);
    bool first = x->node->types[0].rank > 2;
    const char *a = name_of(x, scaled, 0, first), *scale = name_of(x, factor, 0, false);
    const char *offset = name_of(x, rest, 0, false), *mean = name_of(x, shift, 0, false);
    const char *variance = name_of(x, sum, 0, false);
    const char *y = ONNX(x, "BatchNormalization", a, scale, offset, mean, variance);
    tutti__onnx_set_float(x, "epsilon", small);
    tutti__onnx_out_as(x, 0, y, first);
    return true;
}

/* ---- reading ---- */

/* In training: with the batch's own statistics; outputs 1 and 2 are the running ones, moved towards
 * them. */
static void read_batch_norm_training(tutti_onnx_import *m)
{
    double momentum = tutti__onnx_attr_float(m, "momentum", 0.9);
    tutti_sym y = tutti_nn_batch_norm(tutti__onnx_sym_last(m, 0), tutti__onnx_sym(m, 1),
                                      tutti__onnx_sym(m, 2),
                                      .epsilon = tutti__onnx_attr_float(m, "epsilon", 1e-5));
    if (!y.node)
        return;
    tutti__onnx_made_as(m, 0, y, true);
    for (int i = 1; i < 3; i++)
        tutti__onnx_made(m, i,
                         tutti_add(tutti_mul(tutti__onnx_sym(m, 2 + i), momentum),
                                   tutti_mul(tutti_sym_output(y, i), 1 - momentum)));
}

static void read_batch_norm(tutti_onnx_import *m)
{
    if (tutti__onnx_attr_int(m, "training_mode", 0)) {
        read_batch_norm_training(m);
        return;
    }
    if (tutti__onnx_names(m, 1)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "its statistics are used");
        return;
    }
    tutti_sym y = tutti_nn_batch_norm_inference(
        tutti__onnx_sym_last(m, 0), tutti__onnx_sym(m, 1), tutti__onnx_sym(m, 2),
        tutti__onnx_sym(m, 3), tutti__onnx_sym(m, 4),
        .epsilon = tutti__onnx_attr_float(m, "epsilon", 1e-5));
    tutti__onnx_made_as(m, 0, y, true);
}

/* Over all axes from `axis` on; outputs 1 and 2 are the mean and 1 / the standard deviation. */
static void read_layer_norm(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), scale = tutti__onnx_sym(m, 1);
    if (!x.node || !scale.node)
        return;
    int rank = tutti_sym_type(x).rank;
    int64_t axis = tutti__onnx_attr_int(m, "axis", -1);
    double epsilon = tutti__onnx_attr_float(m, "epsilon", 1e-5);
    axis += axis < 0 ? rank : 0;
    bool rows = axis == rank - 1 && !tutti__onnx_names(m, 1) && !tutti__onnx_names(m, 2) &&
                tutti_sym_type(scale).rank == 1;
    if (rows && epsilon > 0) {
        tutti_sym offset =
            tutti__onnx_has(m, 2) ? tutti__onnx_sym(m, 2) : tutti_zeros_like(tutti_read(scale));
        tutti__onnx_made(m, 0, tutti_nn_layer_norm(x, scale, offset, .epsilon = epsilon));
        return;
    }
    tutti_axes axes = {0};
    for (int64_t i = axis < 0 ? 0 : axis; i < rank; i++)
        axes.values[axes.count++] = i;
    tutti_dtype dtype = tutti_sym_type(x).dtype;
    bool wide = dtype == TUTTI_F16 || dtype == TUTTI_BF16;
    tutti_sym a = wide ? tutti_cast(x, TUTTI_F32) : x;
    tutti_sym mean = tutti_mean(a, .axes = axes, .keepdims = true), far = tutti_sub(a, mean);
    tutti_sym variance = tutti_mean(tutti_square(far), .axes = axes, .keepdims = true);
    tutti_sym unit = tutti_rsqrt(tutti_add(variance, epsilon)), y = tutti_mul(far, unit);
    y = tutti_mul(wide ? tutti_cast(y, dtype) : y, scale);
    tutti__onnx_made(m, 0, tutti__onnx_has(m, 2) ? tutti_add(y, tutti__onnx_sym(m, 2)) : y);
    tutti__onnx_made(m, 1, mean);
    tutti__onnx_made(m, 2, unit);
}

/* x / sqrt(mean(x^2) + epsilon) * scale over the axes from `axis` on. */
static void read_rms_norm(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), scale = tutti__onnx_sym(m, 1);
    if (!x.node || !scale.node)
        return;
    int rank = tutti_sym_type(x).rank;
    int64_t axis = tutti__onnx_attr_int(m, "axis", -1);
    tutti_axes axes = {0};
    for (int64_t i = axis + (axis < 0 ? rank : 0); i >= 0 && i < rank; i++)
        axes.values[axes.count++] = i;
    tutti_sym mean = tutti_mean(tutti_square(x), .axes = axes, .keepdims = true);
    mean = tutti_add(mean, tutti__onnx_attr_float(m, "epsilon", 1e-5));
    tutti__onnx_made(m, 0, tutti_mul(tutti_mul(x, tutti_rsqrt(mean)), scale));
}

static void read_instance_norm(tutti_onnx_import *m)
{
    tutti_sym y = tutti_nn_instance_norm(tutti__onnx_sym_last(m, 0), tutti__onnx_sym(m, 1),
                                         tutti__onnx_sym(m, 2),
                                         .epsilon = tutti__onnx_attr_float(m, "epsilon", 1e-5));
    tutti__onnx_made_as(m, 0, y, true);
}

/* Before opset 21 scale and bias are one for each group. */
static void read_group_norm(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym_last(m, 0);
    tutti_sym affine[2] = {tutti__onnx_sym(m, 1), tutti__onnx_sym(m, 2)};
    int64_t groups = tutti__onnx_attr_int(m, "num_groups", 1);
    if (!x.node || !affine[0].node || !affine[1].node || groups < 1)
        return;
    tutti_type type = tutti_sym_type(x);
    int64_t channels = type.dims[type.rank - 1];
    for (int i = 0; i < 2 && tutti_sym_type(affine[i]).dims[0] == groups && channels != groups;
         i++) {
        tutti_sym column = tutti_expand_dims(affine[i], 1);
        affine[i] = tutti_reshape(tutti_broadcast_to(column, -1, channels / groups), channels);
    }
    tutti__onnx_made_as(m, 0,
                        tutti_nn_group_norm(x, affine[0], affine[1], groups,
                                            .epsilon = tutti__onnx_attr_float(m, "epsilon", 1e-5)),
                        true);
}

static void read_lrn(tutti_onnx_import *m)
{
    tutti_sym y = tutti_lrn(tutti__onnx_sym_last(m, 0), tutti__onnx_attr_int(m, "size", 1),
                            .alpha = tutti__onnx_attr_float(m, "alpha", 1e-4),
                            .beta = tutti__onnx_attr_float(m, "beta", 0.75),
                            .bias = tutti__onnx_attr_float(m, "bias", 1));
    tutti__onnx_made_as(m, 0, y, true);
}

/* (x - mean) / (standard deviation + 1e-9) over the axes. */
static void read_mean_variance(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    tutti_axes axes;
    if (!x.node || !tutti__onnx_read_axes(m, 9, "axes", &axes))
        return;
    if (axes.count == 0)
        axes = TUTTI_AXES(0, 2, 3);
    tutti_sym far = tutti_sub(x, tutti_mean(x, .axes = axes, .keepdims = true));
    tutti_sym square = tutti_mean(tutti_square(far), .axes = axes, .keepdims = true);
    tutti__onnx_made(m, 0, tutti_div(far, tutti_add(tutti_sqrt(square), 1e-9)));
}

/* x / |x| along an axis; 0 / 0 counts as 0. */
static void read_lp_norm(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    int axis = tutti__onnx_attr_axis(m, "axis", -1);
    tutti_sym size = tutti_norm(x, .axes = TUTTI_AXES(axis), .keepdims = true,
                                .ord = (int)tutti__onnx_attr_int(m, "p", 2));
    tutti_sym none = tutti_equal(size, 0);
    tutti__onnx_made(m, 0, tutti_div(x, tutti_where(none, 1, size)));
}

/* 1 at the first largest element, 0 elsewhere. */
static tutti_sym hardmax(tutti_sym x, int axis)
{
    tutti_sym best = tutti_expand_dims(tutti_argmax(x, axis), axis);
    tutti_sym ones = tutti_cast(tutti_ones_like(x), TUTTI_I64);
    tutti_sym places = tutti_cumsum(ones, axis, .exclusive = true);
    return tutti_cast(tutti_equal(places, best), tutti_sym_type(x).dtype);
}

/* Softmax, LogSoftmax and Hardmax. Before opset 13 all axes from `axis` on count as one. */
static void read_softmax(tutti_onnx_import *m)
{
    bool flat = m->opset < 13, log = strcmp(m->rule->type, "LogSoftmax") == 0;
    bool hard = strcmp(m->rule->type, "Hardmax") == 0;
    int axis = tutti__onnx_attr_axis(m, "axis", flat ? 1 : -1);
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (!x.node)
        return;
    int rank = tutti_sym_type(x).rank;
    axis += axis < 0 ? rank : 0;
    flat = flat && axis >= 0 && axis != rank - 1 && axis <= rank;
    tutti_sym rows = flat ? tutti__formula_matrix(x, axis) : x;
    int at = flat ? 1 : axis;
    tutti_sym y = hard  ? hardmax(rows, at)
                  : log ? tutti_log_softmax(rows, .axes = TUTTI_AXES(at))
                        : tutti_softmax(rows, .axes = TUTTI_AXES(at));
    tutti__onnx_made(m, 0, flat ? tutti_reshape_like(y, x) : y);
}

const tutti_onnx_op tutti_onnx_batch_norm = {
    .type = "BatchNormalization",
    .read = read_batch_norm,
};

const tutti_onnx_op tutti_onnx_layer_norm = {
    .op = "layer_norm",
    .type = "LayerNormalization",
    .write = write_layer_norm,
    .read = read_layer_norm,
};

const tutti_onnx_op tutti_onnx_rms_norm = {
    .op = "rms_norm",
    .type = "RMSNormalization",
    .write = write_rms_norm,
    .read = read_rms_norm,
};

const tutti_onnx_op tutti_onnx_softmax = {
    .op = "softmax",
    .type = "Softmax",
    .write = write_softmax,
    .read = read_softmax,
};

const tutti_onnx_op tutti_onnx_log_softmax = {
    .op = "log_softmax",
    .type = "LogSoftmax",
    .write = write_softmax,
    .read = read_softmax,
};

const tutti_onnx_op tutti_onnx_instance_norm = {
    .type = "InstanceNormalization",
    .read = read_instance_norm,
};

const tutti_onnx_op tutti_onnx_group_norm = {
    .type = "GroupNormalization",
    .read = read_group_norm,
};

const tutti_onnx_op tutti_onnx_lrn = {
    .type = "LRN",
    .read = read_lrn,
};

const tutti_onnx_op tutti_onnx_mean_variance = {
    .type = "MeanVarianceNormalization",
    .read = read_mean_variance,
};

const tutti_onnx_op tutti_onnx_lp_norm = {
    .type = "LpNormalization",
    .read = read_lp_norm,
};

const tutti_onnx_op tutti_onnx_hardmax = {
    .type = "Hardmax",
    .read = read_softmax,
};
