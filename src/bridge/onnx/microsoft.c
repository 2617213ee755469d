/* microsoft.c: operators of the domain com.microsoft that onnxruntime's quantiser writes. Bytes are
 * turned to the floats that they stand for, and the result to bytes again; products are of
 * integers. */
#include "bridge/onnx.h"

#include <string.h>

#include "tutti/ops_quantized.h"

static tutti_sym given(tutti_onnx_import *m, int i)
{
    return tutti__onnx_has(m, i) ? tutti__onnx_sym(m, i) : TUTTI_NO_SYM;
}

/* A single zero in the shape of its single scale. */
static tutti_sym fitted(tutti_sym zero, tutti_sym scale)
{
    tutti_type z = zero.node ? tutti_sym_type(zero) : (tutti_type){0}, s = tutti_sym_type(scale);
    if (!zero.node || z.rank == s.rank || tutti_type_count(&z) != 1 || tutti_type_count(&s) != 1)
        return zero;
    return tutti_reshape_like(zero, scale);
}

/* Inputs i, i + 1 and i + 2 (bytes, scale, zero) as floats. */
static tutti_sym floats_at(tutti_onnx_import *m, int i)
{
    tutti_sym q = tutti__onnx_sym(m, i), scale = tutti__onnx_sym(m, i + 1);
    if (!q.node || !scale.node)
        return TUTTI_NO_SYM;
    return tutti_dequantize_linear(q, scale, .zero = fitted(given(m, i + 2), scale), .axis = -1);
}

/* Output 0: y as bytes with the scale and zero at input i. */
static void make_bytes(tutti_onnx_import *m, tutti_sym y, int i)
{
    tutti_sym scale = tutti__onnx_sym(m, i);
    if (tutti_sym_ok(y) && tutti_sym_ok(scale))
        tutti__onnx_made(
            m, 0,
            tutti_quantize_linear(y, scale, .zero = fitted(given(m, i + 1), scale), .axis = -1));
}

static void read_two(tutti_onnx_import *m)
{
    tutti_sym a = floats_at(m, 0), b = floats_at(m, 3);
    if (m->status == TUTTI_OK)
        make_bytes(m, m->rule->type[7] == 'A' ? tutti_add(a, b) : tutti_mul(a, b), 6);
}

static void read_one(tutti_onnx_import *m)
{
    tutti_sym x = floats_at(m, 0);
    if (m->status != TUTTI_OK || !x.node)
        return;
    if (strcmp(m->rule->type, "QLinearSigmoid") == 0)
        x = tutti_sigmoid(x);
    else if (strcmp(m->rule->type, "QLinearLeakyRelu") == 0)
        x = tutti_leaky_relu(x, tutti__onnx_attr_float(m, "alpha", 0.01));
    else
        x = tutti_softmax(x, .axes = TUTTI_AXES(tutti__onnx_attr_axis(m, "axis", -1)));
    make_bytes(m, x, 3);
}

static void read_global_average(tutti_onnx_import *m)
{
    tutti_sym x = floats_at(m, 0);
    bool last = tutti__onnx_attr_int(m, "channels_last", 0) != 0;
    tutti_axes axes = {0};
    if (m->status != TUTTI_OK || !x.node)
        return;
    for (int i = last ? 1 : 2; i < tutti_sym_type(x).rank - (last ? 1 : 0); i++)
        axes.values[axes.count++] = i;
    make_bytes(m, tutti_mean(x, .axes = axes, .keepdims = true), 3);
}

static void read_join(tutti_onnx_import *m)
{
    tutti_sym parts[64];
    int count = ((int)m->node->inputs.count - 2) / 3;
    if (count < 1 || count > 64) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "joins %d tensors", count);
        return;
    }
    for (int i = 0; i < count; i++)
        parts[i] = floats_at(m, 2 + 3 * i);
    if (m->status == TUTTI_OK)
        make_bytes(m, tutti_concatenate(count, parts, .axis = tutti__onnx_attr_axis(m, "axis", 0)),
                   0);
}

static tutti_sym turned_if(tutti_sym x, bool turns)
{
    return turns && x.node ? tutti_transpose(x, 1, 0) : x;
}

/* (A - za) (B - zb) + C in whole numbers, times alpha sa sb; bytes where an output scale is given.
 */
static void read_gemm(tutti_onnx_import *m)
{
    tutti_sym a = turned_if(tutti__onnx_sym(m, 0), tutti__onnx_attr_int(m, "transA", 0) != 0);
    tutti_sym b = turned_if(tutti__onnx_sym(m, 3), tutti__onnx_attr_int(m, "transB", 0) != 0);
    tutti_sym sa = tutti__onnx_sym(m, 1), sb = tutti__onnx_sym(m, 4);
    if (m->status != TUTTI_OK)
        return;
    tutti_sym y = tutti_matmul_integer(a, b, .a_zero = given(m, 2), .b_zero = given(m, 5));
    if (tutti__onnx_has(m, 6))
        y = tutti_add(y, tutti__onnx_sym(m, 6));
    tutti_sym scale = tutti_mul(tutti_mul(sa, sb), tutti__onnx_attr_float(m, "alpha", 1));
    y = tutti_mul(tutti_cast(y, tutti_sym_type(sa).dtype), scale);
    if (tutti__onnx_has(m, 7))
        make_bytes(m, y, 7);
    else
        tutti__onnx_made(m, 0, y);
}

/* ---- MatMulNBits ---- */

typedef struct blocks {
    const tutti_tensor *bytes, *scales, *zeros; /* zeros: NULL: the middle */
    int64_t k, n, bits, size, per_row, row_bytes, zero_bytes;
} blocks;

static unsigned bits_at(const tutti_tensor *t, int64_t first_byte, int64_t i, int64_t bits)
{
    const uint8_t *data = tutti_tensor_data((tutti_tensor *)t);
    int64_t each = 8 / bits;
    return (unsigned)data[first_byte + i / each] >> (unsigned)(i % each * bits) &
           ((1U << (unsigned)bits) - 1);
}

static bool microsoft_fits(const blocks *b)
{
    bool sane = b->k > 0 && b->n > 0 && b->k <= INT32_MAX && b->n <= INT32_MAX &&
                (b->bits == 2 || b->bits == 4 || b->bits == 8) && b->size >= 8 &&
                b->size <= INT32_MAX && b->bytes && b->scales;
    if (!sane || tutti_tensor_dtype(b->bytes) != TUTTI_U8)
        return false;
    int64_t per_row = (b->k + b->size - 1) / b->size;
    return tutti_tensor_count(b->bytes) == b->n * per_row * b->size * b->bits / 8 &&
           tutti_tensor_count(b->scales) == b->n * per_row &&
           (!b->zeros || (tutti_tensor_dtype(b->zeros) == TUTTI_U8 &&
                          tutti_tensor_count(b->zeros) == b->n * ((per_row * b->bits + 7) / 8)));
}

/* [K, N] of floats. */
static tutti_tensor *weights_of(blocks *b)
{
    tutti_tensor *w;
    b->per_row = (b->k + b->size - 1) / b->size;
    b->row_bytes = b->per_row * b->size * b->bits / 8;
    b->zero_bytes = (b->per_row * b->bits + 7) / 8;
    if (tutti_tensor_create(tutti_tensor_dtype(b->scales), 2, (int64_t[]){b->k, b->n}, &w) !=
        TUTTI_OK)
        return NULL;
    for (int64_t row = 0; row < b->n; row++)
        for (int64_t i = 0; i < b->k; i++) {
            int64_t block = i / b->size;
            double zero = b->zeros ? bits_at(b->zeros, row * b->zero_bytes, block, b->bits)
                                   : (double)(1 << (b->bits - 1));
            double value = bits_at(b->bytes, row * b->row_bytes, i, b->bits) - zero;
            tutti_tensor_set(w, i * b->n + row,
                             value * tutti_tensor_get(b->scales, row * b->per_row + block));
        }
    return w;
}

static void read_nbits(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    blocks b = {.bytes = tutti__onnx_read_constant(m, 1, "B"),
                .scales = tutti__onnx_read_constant(m, 2, "scales"),
                .k = tutti__onnx_attr_int(m, "K", 0),
                .n = tutti__onnx_attr_int(m, "N", 0),
                .bits = tutti__onnx_attr_int(m, "bits", 4),
                .size = tutti__onnx_attr_int(m, "block_size", 0)};
    b.zeros = tutti__onnx_has(m, 3) ? tutti__onnx_read_constant(m, 3, "zero points") : NULL;
    if (m->status != TUTTI_OK || !x.node)
        return;
    if (!microsoft_fits(&b) || tutti__onnx_has(m, 4)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                              "its weights are in an order that is not known");
        return;
    }
    tutti_tensor *w = weights_of(&b);
    if (!w) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return;
    }
    tutti_sym y = tutti_matmul(x, tutti_constant(m->graph, w));
    tutti_tensor_release(w);
    tutti__onnx_made(m, 0, tutti__onnx_has(m, 5) ? tutti_add(y, tutti__onnx_sym(m, 5)) : y);
}

const tutti_onnx_op tutti_onnx_qlinear_add = {
    .type = "QLinearAdd",
    .domain = "com.microsoft",
    .read = read_two,
};

const tutti_onnx_op tutti_onnx_qlinear_mul = {
    .type = "QLinearMul",
    .domain = "com.microsoft",
    .read = read_two,
};

const tutti_onnx_op tutti_onnx_qlinear_softmax = {
    .type = "QLinearSoftmax",
    .domain = "com.microsoft",
    .read = read_one,
};

const tutti_onnx_op tutti_onnx_qlinear_sigmoid = {
    .type = "QLinearSigmoid",
    .domain = "com.microsoft",
    .read = read_one,
};

const tutti_onnx_op tutti_onnx_qlinear_leaky = {
    .type = "QLinearLeakyRelu",
    .domain = "com.microsoft",
    .read = read_one,
};

const tutti_onnx_op tutti_onnx_qlinear_average = {
    .type = "QLinearGlobalAveragePool",
    .domain = "com.microsoft",
    .read = read_global_average,
};

const tutti_onnx_op tutti_onnx_qlinear_concat = {
    .type = "QLinearConcat",
    .domain = "com.microsoft",
    .read = read_join,
};

const tutti_onnx_op tutti_onnx_qgemm = {
    .type = "QGemm",
    .domain = "com.microsoft",
    .read = read_gemm,
};

const tutti_onnx_op tutti_onnx_matmul_nbits = {
    .type = "MatMulNBits",
    .domain = "com.microsoft",
    .note = "weights are constants",
    .read = read_nbits,
};
