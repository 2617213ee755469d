/* bend.c: functions of one element that are made of several of ours. */
#include "bridge/formulas.h"
#include "bridge/onnx.h"
#include "ops/build.h"

#include <math.h>
#include <string.h>

/* The input in the order in which it is there, and the result in the same. */
static void read_with(tutti_onnx_import *m, tutti_sym (*make)(tutti_onnx_import *m, tutti_sym x))
{
    bool last = tutti__onnx_joined(m);
    tutti_sym x = tutti__onnx_sym_as(m, 0, last);
    if (x.node)
        tutti__onnx_made_as(m, 0, make(m, x), last);
}

/* x > alpha ? x : 0 */
static tutti_sym thresholded(tutti_onnx_import *m, tutti_sym x)
{
    double alpha = tutti__onnx_attr_float(m, "alpha", 1);
    return tutti_where(tutti_greater(x, alpha), x, 0);
}

/* max(x, 0) + min(alpha (e^(x / alpha) - 1), 0) */
static tutti_sym celu(tutti_onnx_import *m, tutti_sym x)
{
    double alpha = tutti__onnx_attr_float(m, "alpha", 1);
    return tutti_mul(tutti_elu(tutti_mul(x, 1 / alpha), 1), alpha);
}

/* x < -lambd: x + bias; x > lambd: x - bias; else 0 */
static tutti_sym shrunk(tutti_onnx_import *m, tutti_sym x)
{
    tutti_sym lambda = tutti__scalar_like(x, tutti__onnx_attr_float(m, "lambd", 0.5));
    tutti_sym bias = tutti__scalar_like(x, tutti__onnx_attr_float(m, "bias", 0));
    tutti_sym zero = tutti__scalar_like(x, 0);
    tutti_sym right = tutti_where(tutti_greater(x, lambda), tutti_sub(x, bias), zero);
    return tutti_where(tutti_less(x, tutti_neg(lambda)), tutti_add(x, bias), right);
}

/* gamma (x > 0 ? x : alpha (e^x - 1)) */
static tutti_sym selu(tutti_onnx_import *m, tutti_sym x)
{
    double alpha = tutti__onnx_attr_float(m, "alpha", 1.67326319217681884765625);
    double gamma = tutti__onnx_attr_float(m, "gamma", 1.05070102214813232421875);
    if (fabs(alpha - 1.67326) < 1e-4 && fabs(gamma - 1.05070) < 1e-4)
        return tutti_selu(x);
    return tutti_mul(tutti_elu(x, alpha), gamma);
}

static tutti_sym acosh_of(tutti_onnx_import *m, tutti_sym x)
{
    (void)m;
    return tutti__formula_acosh(x);
}

static tutti_sym asinh_of(tutti_onnx_import *m, tutti_sym x)
{
    (void)m;
    return tutti__formula_asinh(x);
}

/* (log(1 + x) - log(1 - x)) / 2 */
static tutti_sym atanh_of(tutti_onnx_import *m, tutti_sym x)
{
    (void)m;
    return tutti_mul(tutti_sub(tutti_log1p(x), tutti_log1p(tutti_neg(x))), 0.5);
}

/* x sigmoid(alpha x) */
static tutti_sym swish(tutti_onnx_import *m, tutti_sym x)
{
    double alpha = tutti__onnx_attr_float(m, "alpha", 1);
    return alpha == 1 ? tutti_silu(x) : tutti_mul(x, tutti_sigmoid(tutti_mul(x, alpha)));
}

static tutti_sym hard_swish(tutti_onnx_import *m, tutti_sym x)
{
    (void)m;
    return tutti_hard_swish(x);
}

static tutti_sym mish(tutti_onnx_import *m, tutti_sym x)
{
    (void)m;
    return tutti_mish(x);
}

/* Of infinities those of the sign that is asked for. */
static tutti_sym infinite(tutti_onnx_import *m, tutti_sym x)
{
    tutti_sym y = tutti_is_inf(x), zero = tutti__scalar_like(x, 0);
    if (!tutti__onnx_attr_int(m, "detect_positive", 1))
        y = tutti_logical_and(y, tutti_less(x, zero));
    if (!tutti__onnx_attr_int(m, "detect_negative", 1))
        y = tutti_logical_and(y, tutti_greater(x, zero));
    return y;
}

static void read_thresholded(tutti_onnx_import *m)
{
    read_with(m, thresholded);
}

static void read_celu(tutti_onnx_import *m)
{
    read_with(m, celu);
}

static void read_shrink(tutti_onnx_import *m)
{
    read_with(m, shrunk);
}

static void read_selu(tutti_onnx_import *m)
{
    read_with(m, selu);
}

static void read_acosh(tutti_onnx_import *m)
{
    read_with(m, acosh_of);
}

static void read_asinh(tutti_onnx_import *m)
{
    read_with(m, asinh_of);
}

static void read_atanh(tutti_onnx_import *m)
{
    read_with(m, atanh_of);
}

static void read_swish(tutti_onnx_import *m)
{
    read_with(m, swish);
}

static void read_hard_swish(tutti_onnx_import *m)
{
    read_with(m, hard_swish);
}

/* x tanh(softplus(x)), one node from opset 18 on. */
static void write_mish(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x);
    const char *a = tutti__onnx_in_as(x, 0, first);
    const char *y = x->onnx->opset >= 18
                        ? ONNX(x, "Mish", a)
                        : ONNX(x, "Mul", a, ONNX(x, "Tanh", ONNX(x, "Softplus", a)));
    tutti__onnx_out_as(x, 0, y, first);
}

static void read_mish(tutti_onnx_import *m)
{
    read_with(m, mish);
}

static void read_is_inf(tutti_onnx_import *m)
{
    read_with(m, infinite);
}

/* The slope is a weight along the channels, or broadcasts. */
static void read_prelu(tutti_onnx_import *m)
{
    tutti__onnx_made(m, 0, tutti_prelu(tutti__onnx_sym(m, 0), tutti__onnx_sym(m, 1)));
}

/* Runtimes have it of floats. */
static void write_prelu(tutti_onnx_export *x)
{
    if (tutti_dtype_is_float(x->node->types[0].dtype))
        tutti__onnx_write_plain(x);
    else
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED, "runtimes take floats only");
}

const tutti_onnx_op tutti_onnx_thresholded_relu = {
    .type = "ThresholdedRelu",
    .read = read_thresholded,
};

const tutti_onnx_op tutti_onnx_celu = {
    .type = "Celu",
    .read = read_celu,
};

const tutti_onnx_op tutti_onnx_shrink = {
    .type = "Shrink",
    .read = read_shrink,
};

const tutti_onnx_op tutti_onnx_selu = {
    .op = "selu",
    .type = "Selu",
    .write = tutti__onnx_write_plain,
    .read = read_selu,
};

const tutti_onnx_op tutti_onnx_acosh = {
    .type = "Acosh",
    .read = read_acosh,
};

const tutti_onnx_op tutti_onnx_asinh = {
    .type = "Asinh",
    .read = read_asinh,
};

const tutti_onnx_op tutti_onnx_atanh = {
    .type = "Atanh",
    .read = read_atanh,
};

const tutti_onnx_op tutti_onnx_swish = {
    .type = "Swish",
    .read = read_swish,
};

const tutti_onnx_op tutti_onnx_hard_swish = {
    .op = "hard_swish",
    .type = "HardSwish",
    .write = tutti__onnx_write_plain,
    .read = read_hard_swish,
};

const tutti_onnx_op tutti_onnx_mish = {
    .op = "mish",
    .type = "Mish",
    .write = write_mish,
    .read = read_mish,
};

const tutti_onnx_op tutti_onnx_is_inf = {
    .op = "is_inf",
    .type = "IsInf",
    .write = tutti__onnx_write_plain,
    .read = read_is_inf,
};

const tutti_onnx_op tutti_onnx_prelu = {
    .op = "prelu",
    .type = "PRelu",
    .write = write_prelu,
    .read = read_prelu,
};
