/* triangle.c: triangles, the diagonal, and turning parts of rows round. */
#include "bridge/onnx.h"

static void write_trilu(tutti_onnx_export *x)
{
    const char *offset = tutti__onnx_number(x, TUTTI_I64, (double)NODE_INT(x, "offset"));
    tutti__onnx_out(x, 0, ONNX(x, "Trilu", tutti__onnx_in(x, 0), offset));
    tutti__onnx_set_int(x, "upper", NODE_INT(x, "upper") != 0);
}

static void read_trilu(tutti_onnx_import *m)
{
    int64_t k;
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (!tutti__onnx_read_int(m, 1, 0, &k))
        return;
    tutti__onnx_made(m, 0,
                     tutti__onnx_attr_int(m, "upper", 1) ? tutti_triu(x, k) : tutti_tril(x, k));
}

/* 0, 1, … along an axis of x, as [.., size, ..] of i64 that broadcasts. */
static tutti_sym places(tutti_sym x, int axis)
{
    tutti_axes others = {0};
    int rank = tutti_sym_type(x).rank;
    for (int i = 0; i < rank; i++)
        if (i != axis)
            others.values[others.count++] = i;
    tutti_sym ones = tutti_cast(tutti_ones_like(x), TUTTI_I64);
    if (others.count > 0)
        ones = tutti_ones_like(tutti_max(ones, .axes = others, .keepdims = true));
    return tutti_cumsum(ones, axis, .exclusive = true);
}

static void read_eye_like(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    int64_t k = tutti__onnx_attr_int(m, "k", 0), to = tutti__onnx_attr_int(m, "dtype", 0);
    if (!x.node)
        return;
    tutti_dtype dtype = to ? tutti__onnx_dtype_of(to) : tutti_sym_type(x).dtype;
    tutti_sym rows = tutti_add(places(x, 0), (double)k);
    tutti__onnx_made(m, 0, tutti_cast(tutti_equal(rows, places(x, 1)), dtype));
}

/* Along the time axis the first lengths[b] elements of each row go backwards. */
static void read_reverse_sequence(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), lengths = tutti__onnx_sym(m, 1);
    int time = tutti__onnx_attr_axis(m, "time_axis", 0);
    int batch = tutti__onnx_attr_axis(m, "batch_axis", 1);
    if (!x.node || !lengths.node)
        return;
    int rank = tutti_sym_type(x).rank;
    int64_t dims[TUTTI_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = i == batch ? -1 : 1;
    tutti_sym ends = (tutti_reshape)(tutti_cast(lengths, TUTTI_I64), rank, dims);
    tutti_sym at = places(x, time), back = tutti_sub(tutti_add(ends, -1), at);
    tutti_sym from = tutti_where(tutti_less(at, ends), back, at);
    tutti__onnx_made(m, 0, tutti_take_along(x, tutti_broadcast_like(from, x), time));
}

const tutti_onnx_op tutti_onnx_trilu = {
    .op = "trilu",
    .type = "Trilu",
    .write = write_trilu,
    .read = read_trilu,
};

const tutti_onnx_op tutti_onnx_eye_like = {
    .type = "EyeLike",
    .read = read_eye_like,
};

const tutti_onnx_op tutti_onnx_reverse_sequence = {
    .type = "ReverseSequence",
    .read = read_reverse_sequence,
};
