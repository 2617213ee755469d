/* binary.c: arithmetic, comparisons and logic of two. */
#include "bridge/formulas.h"
#include "bridge/onnx.h"
#include "bridge/onnx/patterns.h"
#include "ops/build.h"

/* An addition may be the end of a larger thing that ONNX has as one operator. */
static void write_add(tutti_onnx_export *x)
{
    if (!tutti__onnx_write_bias(x) && !tutti__onnx_write_batch_norm(x))
        tutti__onnx_write_plain(x);
}

/* ONNX orders numbers only: false and true become 0 and 1. */
static void write_order(tutti_onnx_export *x)
{
    if (tutti__onnx_type_in(x, 0)->dtype != TUTTI_BOOL) {
        tutti__onnx_write_plain(x);
        return;
    }
    const char *a = tutti__onnx_cast(x, tutti__onnx_in(x, 0), TUTTI_I32);
    const char *b = tutti__onnx_cast(x, tutti__onnx_in(x, 1), TUTTI_I32);
    tutti__onnx_out(x, 0, ONNX(x, x->rule->type, a, b));
}

/* Of bools (c and a) or (not c and b): runtimes choose between numbers only. */
static void write_where(tutti_onnx_export *x)
{
    if (x->node->types[0].dtype != TUTTI_BOOL) {
        tutti__onnx_write_plain(x);
        return;
    }
    const char *c = tutti__onnx_in(x, 0), *a = tutti__onnx_in(x, 1), *b = tutti__onnx_in(x, 2);
    const char *otherwise = ONNX(x, "And", ONNX(x, "Not", c), b);
    tutti__onnx_out(x, 0, ONNX(x, "Or", ONNX(x, "And", c, a), otherwise));
}

static void write_not_equal(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x);
    const char *a = tutti__onnx_in_as(x, 0, first), *b = tutti__onnx_in_as(x, 1, first);
    tutti__onnx_out_as(x, 0, ONNX(x, "Not", ONNX(x, "Equal", a, b)), first);
}

/* floor(a / b); of integers (a - a mod b) / b, because ONNX's division of them cuts towards zero.
 */
static void write_floordiv(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x);
    const char *a = tutti__onnx_in_as(x, 0, first), *b = tutti__onnx_in_as(x, 1, first);
    const char *y = tutti_dtype_is_float(x->node->types[0].dtype)
                        ? ONNX(x, "Floor", ONNX(x, "Div", a, b))
                        : ONNX(x, "Div", ONNX(x, "Sub", a, ONNX(x, "Mod", a, b)), b);
    tutti__onnx_out_as(x, 0, y, first);
}

/* ONNX's Mod of floats has the sign of a; ours has b's. */
static void write_mod(tutti_onnx_export *x)
{
    bool first = tutti__onnx_pick(x);
    const char *a = tutti__onnx_in_as(x, 0, first), *b = tutti__onnx_in_as(x, 1, first);
    if (!tutti_dtype_is_float(x->node->types[0].dtype)) {
        tutti__onnx_out_as(x, 0, ONNX(x, "Mod", a, b), first);
        return;
    }
    const char *times = ONNX(x, "Floor", ONNX(x, "Div", a, b));
    tutti__onnx_out_as(x, 0, ONNX(x, "Sub", a, ONNX(x, "Mul", b, times)), first);
}

/* With fmod the sign is a's, else b's. */
static void read_mod(tutti_onnx_import *m)
{
    tutti_sym a = tutti__onnx_sym(m, 0), b = tutti__onnx_sym(m, 1);
    if (!a.node || !b.node)
        return;
    if (!tutti__onnx_attr_int(m, "fmod", 0)) {
        tutti__onnx_made(m, 0, tutti_mod(a, b));
        return;
    }
    tutti__onnx_made(m, 0, tutti__formula_rest(a, b));
}

/* Whether b = op(a), one node and nothing else. */
static bool is_of(tutti_sym b, const char *op, tutti_sym a)
{
    return tutti__is(b.node, op) && b.node->inputs[0].node == a.node &&
           b.node->inputs[0].index == a.index;
}

/* x sigmoid(x) and x hard_sigmoid(x), as exporters write silu and hard_swish, are one node. */
static void read_mul(tutti_onnx_import *m)
{
    bool last = tutti__onnx_joined(m);
    tutti_sym a = tutti__onnx_sym_as(m, 0, last), b = tutti__onnx_sym_as(m, 1, last);
    for (int i = 0; a.node && b.node && i < 2; i++) {
        tutti_sym x = i ? b : a, gate = i ? a : b;
        if (is_of(gate, "sigmoid", x) || is_of(gate, "hard_sigmoid", x)) {
            bool smooth = tutti__is(gate.node, "sigmoid");
            tutti__onnx_made_as(m, 0, smooth ? tutti_silu(x) : tutti_hard_swish(x), last);
            return;
        }
    }
    tutti__onnx_read_plain(m);
}

static void read_div(tutti_onnx_import *m)
{
    tutti_sym a = tutti__onnx_sym(m, 0), b = tutti__onnx_sym(m, 1);
    if (!a.node || !b.node || tutti_dtype_is_float(tutti_sym_type(a).dtype))
        tutti__onnx_read_plain(m);
    else
        tutti__onnx_made(m, 0, tutti__formula_quotient(a, b));
}

/* The exponent may be of another type; the result has the base's. */
static void read_pow(tutti_onnx_import *m)
{
    bool last = tutti__onnx_joined(m);
    tutti_sym a = tutti__onnx_sym_as(m, 0, last), b = tutti__onnx_sym_as(m, 1, last);
    if (!a.node || !b.node)
        return;
    tutti_dtype base = tutti_sym_type(a).dtype, power = tutti_sym_type(b).dtype;
    const tutti_tensor *known = tutti__onnx_try_constant(m, 1);
    bool whole = tutti_dtype_is_int(base) && tutti_dtype_is_float(power);
    tutti_sym y;
    if (known && tutti_tensor_count(known) == 1 && tutti_tensor_get(known, 0) == 2 &&
        tutti_tensor_rank(known) <= tutti_sym_type(a).rank)
        y = tutti_square(a);
    else if (whole)
        y = tutti_cast(tutti_pow(tutti_cast(a, TUTTI_F64), tutti_cast(b, TUTTI_F64)), base);
    else
        y = tutti_pow(a, base == power ? b : tutti_cast(b, base));
    tutti__onnx_made_as(m, 0, y, last);
}

static void read_equal(tutti_onnx_import *m)
{
    tutti_sym a = tutti__onnx_sym(m, 0), b = tutti__onnx_sym(m, 1);
    if (a.node && b.node && tutti_sym_type(a).dtype == TUTTI_STRING)
        tutti__onnx_made(m, 0, tutti_string_equal(a, b));
    else
        tutti__onnx_read_plain(m);
}

/* Max, Min and Sum of any number of inputs. */
static void read_fold(tutti_onnx_import *m)
{
    bool last = tutti__onnx_joined(m);
    tutti_sym y = tutti__onnx_sym_as(m, 0, last);
    for (size_t i = 1; i < m->node->inputs.count && m->status == TUTTI_OK; i++) {
        tutti_sym both[2] = {y, tutti__onnx_sym_as(m, (int)i, last)};
        y = tutti_apply_op(m->graph, m->rule->op ? m->rule->op : "add", 2, both, 0, NULL);
    }
    tutti__onnx_made_as(m, 0, y, last);
}

const tutti_onnx_op tutti_onnx_add = {
    .op = "add",
    .type = "Add",
    .write = write_add,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_sub = {
    .op = "sub",
    .type = "Sub",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_div = {
    .op = "div",
    .type = "Div",
    .write = tutti__onnx_write_plain,
    .read = read_div,
};

const tutti_onnx_op tutti_onnx_mul = {
    .op = "mul",
    .type = "Mul",
    .write = tutti__onnx_write_plain,
    .read = read_mul,
};

const tutti_onnx_op tutti_onnx_pow = {
    .op = "pow",
    .type = "Pow",
    .write = tutti__onnx_write_plain,
    .read = read_pow,
};

const tutti_onnx_op tutti_onnx_equal = {
    .op = "equal",
    .type = "Equal",
    .write = tutti__onnx_write_plain,
    .read = read_equal,
};

const tutti_onnx_op tutti_onnx_less = {
    .op = "less",
    .type = "Less",
    .write = write_order,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_less_equal = {
    .op = "less_equal",
    .type = "LessOrEqual",
    .write = write_order,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_greater = {
    .op = "greater",
    .type = "Greater",
    .write = write_order,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_greater_equal = {
    .op = "greater_equal",
    .type = "GreaterOrEqual",
    .write = write_order,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_logical_and = {
    .op = "logical_and",
    .type = "And",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_logical_or = {
    .op = "logical_or",
    .type = "Or",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_logical_xor = {
    .op = "logical_xor",
    .type = "Xor",
    .write = tutti__onnx_write_plain,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_where = {
    .op = "where",
    .type = "Where",
    .write = write_where,
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_maximum = {
    .op = "maximum",
    .type = "Max",
    .write = tutti__onnx_write_plain,
    .read = read_fold,
};

const tutti_onnx_op tutti_onnx_minimum = {
    .op = "minimum",
    .type = "Min",
    .write = tutti__onnx_write_plain,
    .read = read_fold,
};

const tutti_onnx_op tutti_onnx_sum_of_many = {
    .type = "Sum",
    .read = read_fold,
};

const tutti_onnx_op tutti_onnx_not_equal = {
    .op = "not_equal",
    .write = write_not_equal,
};

const tutti_onnx_op tutti_onnx_floordiv = {
    .op = "floordiv",
    .write = write_floordiv,
};

const tutti_onnx_op tutti_onnx_mod = {
    .op = "mod",
    .type = "Mod",
    .write = write_mod,
    .read = read_mod,
};

/* Bits of integers that stand in wider types are not where they are thought to be. */
static bool has_own_bits(tutti_onnx_import *m)
{
    if (m->onnx->widened)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                              "the model has integers of 16 bits or unsigned ones");
    return !m->onnx->widened;
}

/* -1 - x */
static void read_bitwise_not(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (!x.node || !has_own_bits(m))
        return;
    bool byte = tutti_sym_type(x).dtype == TUTTI_U8;
    tutti__onnx_made(m, 0, tutti_sub(byte ? 255 : -1, x));
}

/* x times or divided by 2^y. A shift by all bits, or by a negative number, leaves none: 0, or to
 * the right -1 of a negative x. 2^y is positive up to `most`. */
static void read_shift(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), y = tutti__onnx_sym(m, 1);
    bool left = tutti__onnx_attr_string(m, "direction", "")[0] == 'L';
    if (!x.node || !y.node || !has_own_bits(m))
        return;
    tutti_dtype dtype = tutti_sym_type(x).dtype;
    double bits = 8 * (double)tutti_dtype_size(dtype);
    double most = left || dtype == TUTTI_U8 ? bits - 1 : bits - 2;
    tutti_sym zero = tutti__scalar_like(x, 0), limit = tutti__scalar_like(y, most);
    tutti_sym inside = tutti_logical_and(tutti_greater_equal(y, 0), tutti_less_equal(y, limit));
    tutti_sym few = tutti_where(inside, y, 0);
    tutti_sym power = tutti_pow(2, few), rest = zero;
    if (!left && dtype != TUTTI_U8)
        rest = tutti_where(tutti_less(x, zero), -1, zero);
    tutti_sym moved = left ? tutti_mul(x, power) : tutti_floordiv(x, power);
    tutti__onnx_made(m, 0, tutti_where(inside, moved, rest));
}

const tutti_onnx_op tutti_onnx_bitwise_not = {
    .type = "BitwiseNot",
    .read = read_bitwise_not,
};

const tutti_onnx_op tutti_onnx_bit_shift = {
    .type = "BitShift",
    .read = read_shift,
};

const tutti_onnx_op tutti_onnx_bitwise_and = {
    .op = "bitwise_and",
    .type = "BitwiseAnd",
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_bitwise_or = {
    .op = "bitwise_or",
    .type = "BitwiseOr",
    .read = tutti__onnx_read_plain,
};

const tutti_onnx_op tutti_onnx_bitwise_xor = {
    .op = "bitwise_xor",
    .type = "BitwiseXor",
    .read = tutti__onnx_read_plain,
};
