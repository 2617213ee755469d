/* unary.c: functions of one element that ONNX has as they are, and those it has as two or three. */
#include "bridge/onnx.h"

/* rsqrt(x) = 1 / sqrt(x). */
static void write_rsqrt(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x);
    const char *root = ONNX(x, "Sqrt", tutti__onnx_in_as(x, 0, first));
    tutti__onnx_out_as(x, 0, ONNX(x, "Reciprocal", root), first);
}

static void write_square(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x);
    const char *a = tutti__onnx_in_as(x, 0, first);
    tutti__onnx_out_as(x, 0, ONNX(x, "Mul", a, a), first);
}

static void write_expm1(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x);
    const char *power = ONNX(x, "Exp", tutti__onnx_in_as(x, 0, first));
    const char *one = tutti__onnx_number(x, x->node->types[0].dtype, 1);
    tutti__onnx_out_as(x, 0, ONNX(x, "Sub", power, one), first);
}

static void write_log1p(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x);
    const char *one = tutti__onnx_number(x, x->node->types[0].dtype, 1);
    const char *sum = ONNX(x, "Add", tutti__onnx_in_as(x, 0, first), one);
    tutti__onnx_out_as(x, 0, ONNX(x, "Log", sum), first);
}

static void write_is_finite(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x);
    const char *a = tutti__onnx_in_as(x, 0, first);
    const char *wrong = ONNX(x, "Or", ONNX(x, "IsNaN", a), ONNX(x, "IsInf", a));
    tutti__onnx_out_as(x, 0, ONNX(x, "Not", wrong), first);
}

const tutti_onnx_op tutti_onnx_abs = {
    .op = "abs",
    .type = "Abs",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_acos = {
    .op = "acos",
    .type = "Acos",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_asin = {
    .op = "asin",
    .type = "Asin",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_atan = {
    .op = "atan",
    .type = "Atan",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_ceil = {
    .op = "ceil",
    .type = "Ceil",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_cos = {
    .op = "cos",
    .type = "Cos",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_cosh = {
    .op = "cosh",
    .type = "Cosh",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_erf = {
    .op = "erf",
    .type = "Erf",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_exp = {
    .op = "exp",
    .type = "Exp",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_floor = {
    .op = "floor",
    .type = "Floor",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_log = {
    .op = "log",
    .type = "Log",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_neg = {
    .op = "neg",
    .type = "Neg",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_reciprocal = {
    .op = "reciprocal",
    .type = "Reciprocal",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_relu = {
    .op = "relu",
    .type = "Relu",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_round = {
    .op = "round",
    .type = "Round",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_sigmoid = {
    .op = "sigmoid",
    .type = "Sigmoid",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_sign = {
    .op = "sign",
    .type = "Sign",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_sin = {
    .op = "sin",
    .type = "Sin",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_sinh = {
    .op = "sinh",
    .type = "Sinh",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_softplus = {
    .op = "softplus",
    .type = "Softplus",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_softsign = {
    .op = "softsign",
    .type = "Softsign",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_sqrt = {
    .op = "sqrt",
    .type = "Sqrt",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_tan = {
    .op = "tan",
    .type = "Tan",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_tanh = {
    .op = "tanh",
    .type = "Tanh",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_logical_not = {
    .op = "logical_not",
    .type = "Not",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_is_nan = {
    .op = "is_nan",
    .type = "IsNaN",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_rsqrt = {
    .op = "rsqrt",
    .write = write_rsqrt,
};

const tutti_onnx_op tutti_onnx_square = {
    .op = "square",
    .write = write_square,
};

const tutti_onnx_op tutti_onnx_expm1 = {
    .op = "expm1",
    .write = write_expm1,
};

const tutti_onnx_op tutti_onnx_log1p = {
    .op = "log1p",
    .write = write_log1p,
};

const tutti_onnx_op tutti_onnx_is_finite = {
    .op = "is_finite",
    .write = write_is_finite,
};
