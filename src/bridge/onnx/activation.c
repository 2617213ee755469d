/* activation.c: activations, as one node where ONNX has them. */
#include "bridge/onnx.h"

#include <math.h>
#include <string.h>

/* ---- writing ---- */

static void write_alpha(tutti_onnx_export *x)
{
    tutti__onnx_write_plain(x);
    tutti__onnx_set_float(x, "alpha", NODE_FLOAT(x, "alpha"));
}

static void write_clipped(tutti_onnx_export *x, double low, double high)
{
    bool first = tutti__onnx_pick(x);
    tutti_dtype dtype = x->node->types[0].dtype;
    const char *a = tutti__onnx_in_as(x, 0, first);
    const char *lowest = isfinite(low) ? tutti__onnx_number(x, dtype, low) : "";
    const char *highest = isfinite(high) ? tutti__onnx_number(x, dtype, high) : "";
    tutti__onnx_out_as(x, 0, ONNX(x, "Clip", a, lowest, highest), first);
}

static void write_relu6(tutti_onnx_export *x)
{
    write_clipped(x, 0, 6);
}

static void write_clip(tutti_onnx_export *x)
{
    write_clipped(x, NODE_FLOAT(x, "min"), NODE_FLOAT(x, "max"));
}

static void write_hard_sigmoid(tutti_onnx_export *x)
{
    tutti__onnx_write_plain(x);
    tutti__onnx_set_float(x, "alpha", 1.0 / 6);
    tutti__onnx_set_float(x, "beta", 0.5);
}

static void write_silu(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x);
    const char *a = tutti__onnx_in_as(x, 0, first);
    tutti__onnx_out_as(x, 0, ONNX(x, "Mul", a, ONNX(x, "Sigmoid", a)), first);
}

/* x (1 + erf(x / sqrt 2)) / 2 */
static const char *exact_gelu(tutti_onnx_export *x, const char *a)
{
    tutti_dtype dtype = x->node->types[0].dtype;
    const char *inner = ONNX(x, "Mul", a, tutti__onnx_number(x, dtype, sqrt(0.5)));
    const char *sum = ONNX(x, "Add", ONNX(x, "Erf", inner), tutti__onnx_number(x, dtype, 1));
    return ONNX(x, "Mul", ONNX(x, "Mul", a, sum), tutti__onnx_number(x, dtype, 0.5));
}

/* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 */
static const char *tanh_gelu(tutti_onnx_export *x, const char *a)
{
    tutti_dtype dtype = x->node->types[0].dtype;
    const char *cube = ONNX(x, "Mul", ONNX(x, "Mul", a, a), a);
    const char *small = ONNX(x, "Mul", cube, tutti__onnx_number(x, dtype, 0.044715));
    const char *factor = tutti__onnx_number(x, dtype, sqrt(2 / 3.14159265358979323846));
    const char *inner = ONNX(x, "Mul", ONNX(x, "Add", a, small), factor);
    const char *sum = ONNX(x, "Add", ONNX(x, "Tanh", inner), tutti__onnx_number(x, dtype, 1));
    return ONNX(x, "Mul", ONNX(x, "Mul", a, sum), tutti__onnx_number(x, dtype, 0.5));
}

/* One node from opset 20 on. */
static void write_gelu(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x), approximate = NODE_INT(x, "approximate") != 0;
    const char *a = tutti__onnx_in_as(x, 0, first), *y;
    if (x->onnx->opset >= 20) {
        y = ONNX(x, "Gelu", a);
        tutti__onnx_set_string(x, "approximate", approximate ? "tanh" : "none");
    } else {
        y = approximate ? tanh_gelu(x, a) : exact_gelu(x, a);
    }
    tutti__onnx_out_as(x, 0, y, first);
}

/* ---- reading ---- */

static void read_leaky_relu(tutti_onnx_import *m)
{
    bool last = tutti__onnx_joined(m);
    tutti_sym a = tutti__onnx_sym_as(m, 0, last);
    tutti__onnx_made_as(m, 0, tutti_leaky_relu(a, tutti__onnx_attr_float(m, "alpha", 0.01)), last);
}

static void read_elu(tutti_onnx_import *m)
{
    bool last = tutti__onnx_joined(m);
    tutti_sym a = tutti__onnx_sym_as(m, 0, last);
    tutti__onnx_made_as(m, 0, tutti_elu(a, tutti__onnx_attr_float(m, "alpha", 1)), last);
}

/* Bounds that are known are attributes of ours, others operands. */
static void read_clip(tutti_onnx_import *m)
{
    const tutti_onnx_known *known = tutti__onnx_input(m, 0);
    bool last = known && known->last.node && !known->plain.node;
    tutti_sym x = tutti__onnx_sym_as(m, 0, last);
    const tutti_tensor *low = tutti__onnx_try_constant(m, 1),
                       *high = tutti__onnx_try_constant(m, 2);
    if (!x.node)
        return;
    double least = low ? tutti_tensor_get(low, 0) : tutti__onnx_attr_float(m, "min", -INFINITY);
    double most = high ? tutti_tensor_get(high, 0) : tutti__onnx_attr_float(m, "max", INFINITY);
    bool computed = (tutti__onnx_has(m, 1) && !low) || (tutti__onnx_has(m, 2) && !high);
    if (tutti_dtype_is_float(tutti_sym_type(x).dtype) && !computed && least <= most) {
        tutti__onnx_made_as(
            m, 0, least == 0 && most == 6 ? tutti_relu6(x) : tutti_clip(x, least, most), last);
        return;
    }
    if (tutti__onnx_has(m, 1))
        x = tutti_maximum(x, tutti__onnx_sym(m, 1));
    if (tutti__onnx_has(m, 2))
        x = tutti_minimum(x, tutti__onnx_sym(m, 2));
    tutti__onnx_made_as(m, 0, x, last);
}

static void read_hard_sigmoid(tutti_onnx_import *m)
{
    double alpha = tutti__onnx_attr_float(m, "alpha", 0.2);
    double beta = tutti__onnx_attr_float(m, "beta", 0.5);
    bool last = tutti__onnx_joined(m);
    tutti_sym a = tutti__onnx_sym_as(m, 0, last);
    tutti_sym y = fabs(alpha - 1.0 / 6) < 1e-7 && beta == 0.5
                      ? tutti_hard_sigmoid(a)
                      : tutti_clip(tutti_add(tutti_mul(a, alpha), beta), 0, 1);
    tutti__onnx_made_as(m, 0, y, last);
}

static void read_gelu(tutti_onnx_import *m)
{
    bool last = tutti__onnx_joined(m);
    tutti_sym a = tutti__onnx_sym_as(m, 0, last);
    bool by_tanh = strcmp(tutti__onnx_attr_string(m, "approximate", "none"), "tanh") == 0;
    tutti__onnx_made_as(m, 0, tutti_gelu(a, .approximate = by_tanh), last);
}

const tutti_onnx_op tutti_onnx_leaky_relu = {
    .op = "leaky_relu",
    .type = "LeakyRelu",
    .write = write_alpha,
    .read = read_leaky_relu,
};

const tutti_onnx_op tutti_onnx_elu = {
    .op = "elu",
    .type = "Elu",
    .write = write_alpha,
    .read = read_elu,
};

const tutti_onnx_op tutti_onnx_relu6 = {
    .op = "relu6",
    .write = write_relu6,
};

const tutti_onnx_op tutti_onnx_clip = {
    .op = "clip",
    .type = "Clip",
    .write = write_clip,
    .read = read_clip,
};

const tutti_onnx_op tutti_onnx_hard_sigmoid = {
    .op = "hard_sigmoid",
    .type = "HardSigmoid",
    .write = write_hard_sigmoid,
    .read = read_hard_sigmoid,
};

const tutti_onnx_op tutti_onnx_silu = {
    .op = "silu",
    .write = write_silu,
};

const tutti_onnx_op tutti_onnx_gelu = {
    .op = "gelu",
    .type = "Gelu",
    .write = write_gelu,
    .read = read_gelu,
};
