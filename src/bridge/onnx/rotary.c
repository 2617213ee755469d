/* rotary.c: RotaryEmbedding (opset 23): pairs of features turned by the angle of their position.
 *   a' = cos a - sin b, b' = sin a + cos b
 * x is [batch, heads, positions, features], or with three axes [batch, positions, heads features];
 * the pairs are the two halves of the features that turn, or neighbours (interleaved). */
#include "bridge/onnx.h"

static tutti_sym strided(tutti_sym x, int64_t begin)
{
    tutti_slice_options cut = {.struct_size = sizeof cut};
    int rank = tutti_sym_type(x).rank;
    cut.begin.count = cut.end.count = cut.step.count = rank;
    for (int i = 0; i < rank; i++) {
        cut.begin.values[i] = i == rank - 1 ? begin : TUTTI_FIRST;
        cut.end.values[i] = TUTTI_LAST;
        cut.step.values[i] = i == rank - 1 ? 2 : 1;
    }
    return tutti_slice_with(x, &cut);
}

/* cos or sin as [batch, positions, 1, pairs]. */
static tutti_sym angles(tutti_onnx_import *m, int i, int64_t pairs)
{
    tutti_sym cache = tutti__onnx_sym(m, i);
    if (cache.node && tutti__onnx_has(m, 3))
        cache = tutti_gather(cache, tutti__onnx_sym(m, 3), 0);
    if (!cache.node || tutti_sym_type(cache).rank != 3) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "its angles are not [batch, positions, pairs]");
        return TUTTI_NO_SYM;
    }
    return tutti_expand_dims(tutti_slice_axis(cache, 2, 0, pairs), 2);
}

/* x [batch, positions, heads, features] of which `wide` turn. */
static tutti_sym turned(tutti_onnx_import *m, tutti_sym x, int64_t wide)
{
    bool neighbours = tutti__onnx_attr_int(m, "interleaved", 0) != 0;
    int64_t half = wide / 2, all = tutti_sym_type(x).dims[3];
    tutti_sym c = angles(m, 1, half), s = angles(m, 2, half);
    tutti_sym part = tutti_slice_axis(x, 3, 0, wide);
    tutti_sym a = neighbours ? strided(part, 0) : tutti_slice_axis(part, 3, 0, half);
    tutti_sym b = neighbours ? strided(part, 1) : tutti_slice_axis(part, 3, half, wide);
    if (m->status != TUTTI_OK)
        return TUTTI_NO_SYM;
    tutti_sym first = tutti_sub(tutti_mul(c, a), tutti_mul(s, b));
    tutti_sym second = tutti_add(tutti_mul(s, a), tutti_mul(c, b));
    tutti_sym y = neighbours
                      ? tutti_reshape_like(tutti_stack(TUTTI_SYMS(first, second), .axis = 4), part)
                      : tutti_concatenate(TUTTI_SYMS(first, second), .axis = 3);
    return wide == all
               ? y
               : tutti_concatenate(TUTTI_SYMS(y, tutti_slice_axis(x, 3, wide, all)), .axis = 3);
}

static void read_rotary(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), y;
    int64_t heads = tutti__onnx_attr_int(m, "num_heads", 0);
    if (!x.node)
        return;
    tutti_type type = tutti_sym_type(x);
    bool flat = type.rank == 3;
    int64_t last = type.rank > 0 ? type.dims[type.rank - 1] : -1;
    int64_t features = flat && heads > 0 ? last / heads : last;
    int64_t wide = tutti__onnx_attr_int(m, "rotary_embedding_dim", 0);
    wide = wide == 0 ? features : wide;
    if ((!flat && type.rank != 4) || (flat && (heads < 1 || last % heads != 0)) || last < 1 ||
        wide < 2 || wide > features || wide % 2 != 0 || (flat && type.dims[1] < 0)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                              "needs a known, even number of features and with three axes known "
                              "positions and num_heads");
        return;
    }
    y = flat ? tutti_reshape(x, -1, type.dims[1], heads, features) : tutti_transpose(x, 0, 2, 1, 3);
    y = turned(m, y, wide);
    if (m->status == TUTTI_OK)
        tutti__onnx_made(m, 0, flat ? tutti_reshape_like(y, x) : tutti_transpose(y, 0, 2, 1, 3));
}

const tutti_onnx_op tutti_onnx_rotary_embedding = {
    .type = "RotaryEmbedding",
    .read = read_rotary,
};
