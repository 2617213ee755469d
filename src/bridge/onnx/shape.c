/* shape.c: other shapes and orders for the same elements; repeating them. See reshape.c too. */
#include "bridge/onnx.h"

#include <string.h>

/* ---- writing ---- */

static void write_flatten(tutti_onnx_export *x)
{
    const char *y = ONNX(x, "Flatten", tutti__onnx_in(x, 0));
    tutti__onnx_set_int(x, "axis", 1);
    tutti__onnx_out(x, 0, y);
}

static void write_squeeze(tutti_onnx_export *x)
{
    const int64_t *axes;
    int64_t ones[TUTTI_MAX_RANK];
    int count = NODE_INTS(x, "axes", &axes);
    const tutti_type *type = tutti__onnx_type_in(x, 0);
    for (int i = 0; i < type->rank && (count == 0 || axes == ones); i++)
        if (type->dims[i] == 1) {
            axes = ones;
            ones[count++] = i;
        }
    const char *list = count > 0 ? tutti__onnx_ints(x, count, axes) : "";
    tutti__onnx_out(x, 0, ONNX(x, "Squeeze", tutti__onnx_in(x, 0), list));
}

static void write_expand_dims(tutti_onnx_export *x)
{
    tutti__onnx_out(x, 0, tutti__onnx_unsqueezed(x, tutti__onnx_in(x, 0), NODE_INT(x, "axis")));
}

static void write_transpose(tutti_onnx_export *x)
{
    const int64_t *order;
    int64_t whole[TUTTI_MAX_RANK];
    int rank = x->node->types[0].rank, count = NODE_INTS(x, "order", &order);
    for (int i = 0; i < rank; i++)
        whole[i] = count == 0 ? rank - 1 - i : order[i] < 0 ? order[i] + rank : order[i];
    tutti__onnx_out(x, 0, tutti__onnx_turned(x, tutti__onnx_in(x, 0), rank, whole));
}

static void write_tile(tutti_onnx_export *x)
{
    const int64_t *times;
    int count = NODE_INTS(x, "multiples", &times);
    tutti__onnx_out(x, 0, ONNX(x, "Tile", tutti__onnx_in(x, 0), tutti__onnx_ints(x, count, times)));
}

static void write_shape(tutti_onnx_export *x)
{
    tutti__onnx_out(x, 0, ONNX(x, "Shape", tutti__onnx_in(x, 0)));
}

static void write_size(tutti_onnx_export *x)
{
    const int64_t *axes;
    int count = NODE_INTS(x, "axes", &axes);
    const char *a = tutti__onnx_in(x, 0);
    if (count == 0) {
        tutti__onnx_out(x, 0, ONNX(x, "Size", a));
        return;
    }
    const char *dims = ONNX(x, "Gather", ONNX(x, "Shape", a), tutti__onnx_ints(x, count, axes));
    const char *y = ONNX(x, "ReduceProd", dims);
    tutti__onnx_set_int(x, "keepdims", 0);
    tutti__onnx_out(x, 0, y);
}

/* ---- reading ---- */

/* [d0 … d(axis-1), rest] */
static void read_flatten(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (!x.node)
        return;
    tutti_type type = tutti_sym_type(x);
    int64_t axis = tutti__onnx_attr_int(m, "axis", 1), before = 1;
    axis += axis < 0 ? type.rank : 0;
    if (axis < 0 || axis > type.rank) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "axis %lld is not there", (long long)axis);
        return;
    }
    if (axis == 1 && type.rank > 0) {
        tutti__onnx_made(m, 0, tutti_nn_flatten(x));
        return;
    }
    int64_t after = 1;
    bool front = true, back = true;
    for (int i = 0; i < type.rank; i++) {
        bool *side = i < axis ? &front : &back;
        *side =
            *side && type.dims[i] >= 0 &&
            tutti__mul_size(i < axis ? before : after, type.dims[i], i < axis ? &before : &after);
    }
    if (front || back)
        tutti__onnx_made(m, 0, tutti_reshape(x, front ? before : -1, back ? after : -1));
    else
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "dimensions on both sides are not known");
}

static void read_squeeze(tutti_onnx_import *m)
{
    tutti_axes axes;
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (tutti__onnx_read_axes(m, 1, "axes", &axes))
        tutti__onnx_made(m, 0, (tutti_squeeze)(x, axes.count, axes.values));
}

static void sort(tutti_axes *axes)
{
    for (int i = 1; i < axes->count; i++)
        for (int k = i; k > 0 && axes->values[k] < axes->values[k - 1]; k--) {
            int64_t kept = axes->values[k];
            axes->values[k] = axes->values[k - 1];
            axes->values[k - 1] = kept;
        }
}

/* Axes count in the result. */
static void read_unsqueeze(tutti_onnx_import *m)
{
    tutti_axes axes;
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (!x.node || !tutti__onnx_read_axes(m, 1, "axes", &axes))
        return;
    int rank = tutti_sym_type(x).rank + axes.count;
    for (int i = 0; i < axes.count; i++) {
        axes.values[i] += axes.values[i] < 0 ? rank : 0;
        if (axes.values[i] < 0 || axes.values[i] >= rank || rank > TUTTI_MAX_RANK) {
            tutti__onnx_read_fail(m, TUTTI_CORRUPT, "an axis is out of range");
            return;
        }
    }
    sort(&axes);
    for (int i = 0; i < axes.count; i++)
        x = tutti_expand_dims(x, (int)axes.values[i]);
    tutti__onnx_made(m, 0, x);
}

/* What turns channels first to channels last finds the symbol there already. */
static void read_transpose(tutti_onnx_import *m)
{
    const int64_t *order;
    int64_t to_last[TUTTI_MAX_RANK];
    int count = tutti__onnx_attr_ints(m, "perm", &order);
    const tutti_onnx_known *known = tutti__onnx_input(m, 0);
    if (known && known->last.node && count > 2 && count <= TUTTI_MAX_RANK) {
        tutti__onnx_last_order(count, to_last);
        if (memcmp(order, to_last, (size_t)count * sizeof *order) == 0 &&
            tutti_sym_type(known->last).rank == count) {
            tutti__onnx_made(m, 0, known->last);
            return;
        }
    }
    tutti__onnx_made(m, 0, (tutti_transpose)(tutti__onnx_sym(m, 0), count, order));
    /* And what turns to channels first is kept as what it was made of. */
    tutti__onnx_first_order(count > 2 && count <= TUTTI_MAX_RANK ? count : 0, to_last);
    tutti_onnx_known *made =
        tutti__onnx_names(m, 0) ? tutti__map_get(&m->known, m->node->outputs.items[0]) : NULL;
    if (made && count > 2 && count <= TUTTI_MAX_RANK &&
        memcmp(order, to_last, (size_t)count * sizeof *order) == 0)
        made->last = tutti__onnx_sym(m, 0);
}

static void read_tile(tutti_onnx_import *m)
{
    tutti_axes times;
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (tutti__onnx_read_ints(m, 1, "the repeats", &times))
        tutti__onnx_made(m, 0, (tutti_tile)(x, times.count, times.values));
}

/* What folding left over. */
static void read_shape(tutti_onnx_import *m)
{
    tutti__onnx_made(m, 0, tutti_shape(tutti__onnx_sym(m, 0)));
}

static void read_size(tutti_onnx_import *m)
{
    tutti__onnx_made(m, 0, (tutti_size)(tutti__onnx_sym(m, 0), 0, NULL));
}

const tutti_onnx_op tutti_onnx_flatten = {
    .op = "flatten",
    .type = "Flatten",
    .write = write_flatten,
    .read = read_flatten,
};

const tutti_onnx_op tutti_onnx_squeeze = {
    .op = "squeeze",
    .type = "Squeeze",
    .write = write_squeeze,
    .read = read_squeeze,
};

const tutti_onnx_op tutti_onnx_expand_dims = {
    .op = "expand_dims",
    .type = "Unsqueeze",
    .write = write_expand_dims,
    .read = read_unsqueeze,
};

const tutti_onnx_op tutti_onnx_transpose = {
    .op = "transpose",
    .type = "Transpose",
    .write = write_transpose,
    .read = read_transpose,
};

const tutti_onnx_op tutti_onnx_tile = {
    .op = "tile",
    .type = "Tile",
    .write = write_tile,
    .read = read_tile,
};

const tutti_onnx_op tutti_onnx_shape = {
    .op = "shape",
    .type = "Shape",
    .write = write_shape,
    .read = read_shape,
};

const tutti_onnx_op tutti_onnx_size = {
    .op = "size",
    .type = "Size",
    .write = write_size,
    .read = read_size,
};
