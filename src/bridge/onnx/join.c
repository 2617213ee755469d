/* join.c: joining and cutting along an axis. */
#include "bridge/onnx.h"
#include "ops/build.h"

#include <string.h>

/* ---- writing ---- */

/* An axis of ours where the channels come first. */
static int64_t axis_first(int64_t axis, int rank)
{
    axis += axis < 0 ? rank : 0;
    return axis == 0 ? 0 : axis == rank - 1 ? 1 : axis + 1;
}

static void write_concat(tutti_onnx_export *x)
{
    const char *inputs[64];
    int count = x->node->input_count;
    bool first = tutti__onnx_pick(x);
    int64_t axis = NODE_INT(x, "axis");
    if (count > 64) {
        tutti__onnx_write_fail(x, TUTTI_TOO_LARGE, "joins more than 64 inputs");
        return;
    }
    for (int i = 0; i < count; i++)
        inputs[i] = tutti__onnx_in_as(x, i, first);
    const char *y = tutti__onnx_node(x, "Concat", (size_t)count, inputs);
    tutti__onnx_set_int(x, "axis", first ? axis_first(axis, x->node->types[0].rank) : axis);
    tutti__onnx_out_as(x, 0, y, first);
}

static void write_stack(tutti_onnx_export *x)
{
    const char *inputs[64];
    int count = x->node->input_count;
    int64_t axis = NODE_INT(x, "axis");
    if (count > 64) {
        tutti__onnx_write_fail(x, TUTTI_TOO_LARGE, "joins more than 64 inputs");
        return;
    }
    for (int i = 0; i < count; i++)
        inputs[i] = tutti__onnx_unsqueezed(x, tutti__onnx_in(x, i), axis);
    const char *y = tutti__onnx_node(x, "Concat", (size_t)count, inputs);
    tutti__onnx_set_int(x, "axis", axis);
    tutti__onnx_out(x, 0, y);
}

/* `count` pieces, of equal sizes when none are given; their names go to ret. */
static void join_cut(tutti_onnx_export *x, int64_t axis, int size_count, const int64_t *sizes,
                     int count, const char **ret)
{
    const char *list = size_count > 0 ? tutti__onnx_ints(x, size_count, sizes) : "";
    ret[0] = ONNX(x, "Split", tutti__onnx_in(x, 0), list);
    tutti__onnx_set_int(x, "axis", axis);
    if (size_count == 0 && x->onnx->opset >= 18)
        tutti__onnx_set_int(x, "num_outputs", count);
    for (int i = 1; i < count; i++)
        ret[i] = tutti__onnx_more(x);
}

static void write_split(tutti_onnx_export *x)
{
    const char *pieces[64];
    const int64_t *sizes;
    int count = x->node->output_count, size_count = NODE_INTS(x, "sizes", &sizes);
    if (count > 64) {
        tutti__onnx_write_fail(x, TUTTI_TOO_LARGE, "makes more than 64 pieces");
        return;
    }
    join_cut(x, NODE_INT(x, "axis"), size_count, sizes, count, pieces);
    for (int i = 0; i < count; i++)
        tutti__onnx_out(x, i, pieces[i]);
}

static void write_unstack(tutti_onnx_export *x)
{
    const char *pieces[64];
    int count = x->node->output_count;
    int64_t axis = NODE_INT(x, "axis");
    if (count > 64) {
        tutti__onnx_write_fail(x, TUTTI_TOO_LARGE, "makes more than 64 pieces");
        return;
    }
    join_cut(x, axis, 0, NULL, count, pieces);
    for (int i = 0; i < count; i++)
        tutti__onnx_out(x, i, tutti__onnx_squeezed(x, pieces[i], axis));
}

/* ---- reading ---- */

static int64_t axis_last(int64_t axis, int rank)
{
    axis += axis < 0 ? rank : 0;
    return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1;
}

static void read_concat(tutti_onnx_import *m)
{
    tutti_sym inputs[64];
    size_t count = m->node->inputs.count;
    bool last = tutti__onnx_joined(m);
    int64_t axis = tutti__onnx_attr_axis(m, "axis", 0);
    if (count == 0 || count > 64) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "joins %zu inputs; 1 to 64 are possible",
                              count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        inputs[i] = tutti__onnx_sym_as(m, (int)i, last);
    if (m->status != TUTTI_OK)
        return;
    if (last)
        axis = axis_last(axis, tutti_sym_type(inputs[0]).rank);
    tutti__onnx_made_as(m, 0, tutti_concatenate((int)count, inputs, .axis = (int)axis), last);
}

/* Sizes as input or attribute, or as equal as may be, the last one smaller; false: all equal. */
static bool read_sizes(tutti_onnx_import *m, tutti_sym x, int axis, size_t count, int64_t *ret)
{
    const int64_t *given;
    tutti_type type = tutti_sym_type(x);
    int rank = type.rank, listed = tutti__onnx_attr_ints(m, "split", &given);
    int64_t size = axis >= -rank && axis < rank ? type.dims[axis < 0 ? axis + rank : axis] : -1;
    if (tutti__onnx_has(m, 1)) {
        const tutti_tensor *sizes = tutti__onnx_read_constant(m, 1, "the sizes");
        if (!sizes || tutti_tensor_count(sizes) != (int64_t)count) {
            tutti__onnx_read_fail(m, TUTTI_CORRUPT, "has not one size for each output");
            return false;
        }
        for (size_t i = 0; i < count; i++)
            ret[i] = tutti_tensor_get_int(sizes, (int64_t)i);
        return true;
    }
    if (listed > 0 && listed != (int)count) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "has not one size for each output");
        return false;
    }
    if (listed > 0) {
        memcpy(ret, given, count * sizeof *ret);
        return true;
    }
    int64_t pieces = (int64_t)count, each = (size + pieces - 1) / pieces;
    if (size < 0 || size % pieces == 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        ret[i] = each < size ? each : size;
        size -= ret[i];
    }
    return true;
}

/* Pieces of an axis whose size is not known, as equal as may be: rows i e to (i + 1) e of n, with e
 * = ceil(n / pieces); the last ones are smaller. */
static void split_later(tutti_onnx_import *m, tutti_sym x, int axis, size_t pieces)
{
    tutti_sym size = tutti_size(x, axis), one = tutti__scalar_like(size, 1);
    tutti_sym each = tutti_floordiv(tutti_add(size, (double)pieces - 1), (double)pieces);
    tutti_sym begin = tutti__scalar_like(size, 0);
    for (size_t i = 0; i < pieces; i++) {
        tutti_sym end = tutti_minimum(tutti_mul(each, (double)i + 1), size);
        tutti__onnx_made(m, (int)i, tutti_gather(x, tutti_range_dynamic(begin, end, one), axis));
        begin = end;
    }
}

static void read_split(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), y;
    size_t count = m->node->outputs.count;
    int axis = tutti__onnx_attr_axis(m, "axis", 0);
    if (!x.node || count == 0 || count > 64) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "makes %zu pieces; 1 to 64 are possible",
                              count);
        return;
    }
    int64_t list[64];
    int rank = tutti_sym_type(x).rank, at = axis < 0 ? axis + rank : axis;
    if (tutti__onnx_attr(m->node, "num_outputs", ONNX_INT) && !tutti__onnx_has(m, 1) && at >= 0 &&
        at < rank && tutti_sym_type(x).dims[at] < 0 && count > 1) {
        split_later(m, x, at, count);
        return;
    }
    if (!read_sizes(m, x, axis, count, list))
        y = tutti_split_into(x, axis, (int)count);
    else
        y = (tutti_split_sizes)(x, axis, (int)count, list);
    for (size_t i = 0; y.node && i < count; i++)
        tutti__onnx_made(m, (int)i, tutti_sym_output(y, (int)i));
}

const tutti_onnx_op tutti_onnx_concat = {
    .op = "concat",
    .type = "Concat",
    .write = write_concat,
    .read = read_concat,
};

const tutti_onnx_op tutti_onnx_stack = {
    .op = "stack",
    .write = write_stack,
};

const tutti_onnx_op tutti_onnx_split = {
    .op = "split",
    .type = "Split",
    .write = write_split,
    .read = read_split,
};

const tutti_onnx_op tutti_onnx_unstack = {
    .op = "unstack",
    .write = write_unstack,
};
