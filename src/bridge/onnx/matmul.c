/* matmul.c: products of matrices. */
#include "bridge/onnx.h"

#include <string.h>

/* ---- writing ---- */

/* Operand i with its last two axes swapped where the node wants it. */
static const char *operand(tutti_onnx_export *x, int i, bool transposed)
{
    int rank = tutti__onnx_type_in(x, i)->rank;
    int64_t order[TUTTI_MAX_RANK];
    const char *name = tutti__onnx_in(x, i);
    if (!transposed)
        return name;
    for (int axis = 0; axis < rank; axis++)
        order[axis] = axis < rank - 2 ? axis : 2 * rank - 3 - axis;
    return tutti__onnx_turned(x, name, rank, order);
}

static void write_matmul(tutti_onnx_export *x)
{
    const char *a = operand(x, 0, NODE_INT(x, "transpose_a") != 0);
    const char *b = operand(x, 1, NODE_INT(x, "transpose_b") != 0);
    tutti__onnx_out(x, 0, ONNX(x, "MatMul", a, b));
}

/* A diagonal that is filled: ONNX cannot say it. */
static bool repeats_label(const char *equation)
{
    const char *result = strstr(equation, "->");
    for (const char *at = result ? result + 2 : ""; *at; at++)
        if (*at != '.' && *at != ' ' && strchr(at + 1, *at))
            return true;
    return false;
}

static void write_einsum(tutti_onnx_export *x)
{
    const char *inputs[16];
    int count = x->node->input_count;
    if (count > 16 || repeats_label(NODE_STR(x, "equation"))) {
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED,
                               "'%s' has a label twice in its result, or too many operands",
                               NODE_STR(x, "equation"));
        return;
    }
    for (int i = 0; i < count && i < 16; i++)
        inputs[i] = tutti__onnx_in(x, i);
    const char *y = tutti__onnx_node(x, "Einsum", (size_t)count, inputs);
    tutti__onnx_set_string(x, "equation", NODE_STR(x, "equation"));
    tutti__onnx_out(x, 0, y);
}

static void write_outer(tutti_onnx_export *x)
{
    const char *a = tutti__onnx_in(x, 0), *b = tutti__onnx_in(x, 1);
    const char *column = tutti__onnx_unsqueezed(x, a, 1), *row = tutti__onnx_unsqueezed(x, b, 0);
    tutti__onnx_out(x, 0, ONNX(x, "Mul", column, row));
}

/* ---- reading ---- */

/* A vector counts as a row on the left, as a column on the right. */
static void read_matmul(tutti_onnx_import *m)
{
    tutti_sym a = tutti__onnx_sym(m, 0), b = tutti__onnx_sym(m, 1);
    if (!a.node || !b.node)
        return;
    bool row = tutti_sym_type(a).rank == 1, column = tutti_sym_type(b).rank == 1;
    a = row ? tutti_expand_dims(a, 0) : a;
    b = column ? tutti_expand_dims(b, 1) : b;
    tutti_sym y =
        tutti__onnx_product(m, a, tutti_matmul(tutti__onnx_factor(m, a), tutti__onnx_factor(m, b)));
    y = row ? tutti_squeeze(y, -2) : y;
    tutti__onnx_made(m, 0, column ? tutti_squeeze(y, -1) : y);
}

/* y = alpha a b + beta c */
static void read_gemm(tutti_onnx_import *m)
{
    double alpha = tutti__onnx_attr_float(m, "alpha", 1),
           beta = tutti__onnx_attr_float(m, "beta", 1);
    tutti_sym a = tutti__onnx_sym(m, 0), b = tutti__onnx_sym(m, 1);
    tutti_sym y = tutti_matmul(tutti__onnx_factor(m, a), tutti__onnx_factor(m, b),
                               .transpose_a = tutti__onnx_attr_int(m, "transA", 0) != 0,
                               .transpose_b = tutti__onnx_attr_int(m, "transB", 0) != 0);
    y = tutti__onnx_product(m, a, y);
    y = alpha == 1 ? y : tutti_mul(y, alpha);
    if (tutti__onnx_has(m, 2)) {
        tutti_sym c = tutti__onnx_sym(m, 2);
        y = tutti_add(y, beta == 1 ? c : tutti_mul(c, beta));
    }
    tutti__onnx_made(m, 0, y);
}

static void read_einsum(tutti_onnx_import *m)
{
    tutti_sym inputs[15];
    size_t count = m->node->inputs.count;
    if (count == 0 || count > 15) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "has %zu operands, 1 to 15 are possible",
                              count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        inputs[i] = tutti__onnx_sym(m, (int)i);
    if (m->status == TUTTI_OK)
        tutti__onnx_made(
            m, 0, (tutti_einsum)(tutti__onnx_attr_string(m, "equation", ""), (int)count, inputs));
}

const tutti_onnx_op tutti_onnx_matmul = {
    .op = "matmul",
    .type = "MatMul",
    .write = write_matmul,
    .read = read_matmul,
};

const tutti_onnx_op tutti_onnx_gemm = {
    .type = "Gemm",
    .read = read_gemm,
};

const tutti_onnx_op tutti_onnx_einsum = {
    .op = "einsum",
    .type = "Einsum",
    .write = write_einsum,
    .read = read_einsum,
};

const tutti_onnx_op tutti_onnx_outer = {
    .op = "outer",
    .write = write_outer,
};
