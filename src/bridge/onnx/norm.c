/* norm.c: normalisation and softmax. */
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

static void read_batch_norm(tutti_onnx_import *m)
{
    if (tutti__onnx_attr_int(m, "training_mode", 0) || tutti__onnx_names(m, 1)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "is in training mode");
        return;
    }
    tutti_sym y = tutti_batch_norm_inference_of(
        tutti__onnx_sym_last(m, 0), tutti__onnx_sym(m, 1), tutti__onnx_sym(m, 2),
        tutti__onnx_sym(m, 3), tutti__onnx_sym(m, 4),
        .epsilon = tutti__onnx_attr_float(m, "epsilon", 1e-5));
    tutti__onnx_made_as(m, 0, y, true);
}

static void read_layer_norm(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), scale = tutti__onnx_sym(m, 1);
    int64_t axis = tutti__onnx_attr_int(m, "axis", -1);
    if (!x.node || !scale.node)
        return;
    if (tutti__onnx_names(m, 1) || (axis != -1 && axis != tutti_sym_type(x).rank - 1)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                              "normalises more than the last axis, or its statistics are used");
        return;
    }
    tutti_sym offset =
        tutti__onnx_has(m, 2) ? tutti__onnx_sym(m, 2) : tutti_zeros_like(tutti_read(scale));
    tutti__onnx_made(m, 0,
                     tutti_layer_norm_of(x, scale, offset,
                                         .epsilon = tutti__onnx_attr_float(m, "epsilon", 1e-5)));
}

static void read_softmax(tutti_onnx_import *m)
{
    int axis = tutti__onnx_attr_axis(m, "axis", -1);
    tutti_sym x = tutti__onnx_sym(m, 0);
    bool log = strcmp(m->rule->type, "LogSoftmax") == 0;
    tutti__onnx_made(m, 0, log ? tutti_log_softmax_along(x, axis) : tutti_softmax_along(x, axis));
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
    .write = write_rms_norm,
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
