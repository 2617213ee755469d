/* gather.c: picking elements by index. */
#include <string.h>

#include "bridge/formulas.h"
#include "bridge/onnx.h"
#include "ops/build.h"

/* ---- writing ---- */

static void write_gather(tutti_onnx_export *x)
{
    const char *y = ONNX(x, x->rule->type, tutti__onnx_in(x, 0), tutti__onnx_in(x, 1));
    tutti__onnx_set_int(x, "axis", NODE_INT(x, "axis"));
    tutti__onnx_out(x, 0, y);
}

/* Indices are i64 in ONNX. */
static void write_gather_nd(tutti_onnx_export *x)
{
    const char *indices = tutti__onnx_in(x, 1);
    if (tutti__onnx_type_in(x, 1)->dtype != TUTTI_I64)
        indices = tutti__onnx_cast(x, indices, TUTTI_I64);
    tutti__onnx_out(x, 0, ONNX(x, "GatherND", tutti__onnx_in(x, 0), indices));
}

/* The largest and the smallest came with opset 18. */
static void write_scatter_elements(tutti_onnx_export *x)
{
    const char *reduction = NODE_STR(x, "reduction");
    if (reduction[0] == 'm' && strcmp(reduction, "mul") != 0 && x->onnx->opset < 18) {
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED, "reduction '%s' needs opset 18", reduction);
        return;
    }
    const char *y =
        ONNX(x, x->rule->type, tutti__onnx_in(x, 0), tutti__onnx_in(x, 1), tutti__onnx_in(x, 2));
    tutti__onnx_set_int(x, "axis", NODE_INT(x, "axis"));
    if (strcmp(reduction, "none") != 0)
        tutti__onnx_set_string(x, "reduction", reduction);
    tutti__onnx_out(x, 0, y);
}

/* Runtimes know it for i64 indices and for f32 and i64 values; others are converted. */
static void write_one_hot(tutti_onnx_export *x)
{
    tutti_dtype wanted = x->node->types[0].dtype;
    tutti_dtype dtype = wanted == TUTTI_I64 ? TUTTI_I64 : TUTTI_F32;
    int64_t two[1] = {2};
    tutti_tensor *values;
    const char *indices = tutti__onnx_in(x, 0);
    if (NODE_INT(x, "depth") < 1) {
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED, "runtimes refuse a depth of 0");
        return;
    }
    if (tutti__onnx_type_in(x, 0)->dtype != TUTTI_I64)
        indices = tutti__onnx_cast(x, indices, TUTTI_I64);
    if (tutti_tensor_create(dtype, 1, two, &values) != TUTTI_OK) {
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
        return;
    }
    tutti_tensor_set(values, 0, NODE_FLOAT(x, "off"));
    tutti_tensor_set(values, 1, NODE_FLOAT(x, "on"));
    const char *depth = tutti__onnx_number(x, TUTTI_I64, (double)NODE_INT(x, "depth"));
    /* ONNX counts negative ones from the end; ours are no class. */
    const char *below = ONNX(x, "Less", indices, tutti__onnx_number(x, TUTTI_I64, 0));
    indices = ONNX(x, "Where", below, depth, indices);
    const char *both = tutti__onnx_constant(x, values);
    const char *y = ONNX(x, "OneHot", indices, depth, both);
    tutti__onnx_set_int(x, "axis", -1);
    tutti__onnx_out(x, 0, dtype == wanted ? y : tutti__onnx_cast(x, y, wanted));
}

/* ---- reading ---- */

/* Negative indices count from the end. Those that are known not to be any are left alone. */
static tutti_sym positive_indices(tutti_onnx_import *m, tutti_sym x, int axis)
{
    const tutti_onnx_known *known = tutti__onnx_input(m, 1);
    bool negative = !known || !known->value;
    for (int64_t i = 0; known && known->value && i < tutti_tensor_count(known->value); i++)
        negative = negative || tutti_tensor_get_int(known->value, i) < 0;
    tutti_sym indices = tutti__onnx_sym(m, 1);
    if (!negative || !indices.node)
        return indices;
    int64_t size = tutti_sym_type(x).dims[axis];
    tutti_sym whole = size >= 0 ? tutti__scalar_like(indices, (double)size)
                                : tutti_cast(tutti_size(x, axis), tutti_sym_type(indices).dtype);
    tutti_sym below = tutti_less(indices, 0);
    return tutti_where(below, tutti_add(indices, whole), indices);
}

static void read_gather(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    int64_t axis = tutti__onnx_attr_int(m, "axis", 0);
    if (!x.node)
        return;
    int rank = tutti_sym_type(x).rank;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "axis %lld is not there", (long long)axis);
        return;
    }
    tutti_sym indices = positive_indices(m, x, (int)axis);
    if (indices.node)
        tutti__onnx_made(m, 0, tutti_gather(x, indices, (int)axis));
}

static void read_gather_elements(tutti_onnx_import *m)
{
    tutti__onnx_made(m, 0,
                     tutti_gather_elements(tutti__onnx_sym(m, 0), tutti__onnx_sym(m, 1),
                                           tutti__onnx_attr_axis(m, "axis", 0)));
}

/* Rows of indices [.., k] with those below 0 counted from the end of their axis. */
static tutti_sym positive_rows(tutti_sym indices, tutti_sym x, int64_t first)
{
    tutti_type type = tutti_sym_type(indices), of = tutti_sym_type(x);
    int64_t depth = type.rank > 0 ? type.dims[type.rank - 1] : 0;
    tutti_sym sizes[TUTTI_MAX_RANK];
    indices = type.dtype == TUTTI_I64 ? indices : tutti_cast(indices, TUTTI_I64);
    if (depth < 1 || depth + first > of.rank)
        return indices;
    for (int64_t i = 0; i < depth; i++)
        sizes[i] = tutti_size(x, i + first);
    tutti_sym whole = tutti_stack((int)depth, sizes);
    tutti_sym below = tutti_less(indices, 0);
    return tutti_where(below, tutti_add(indices, whole), indices);
}

/* With batch_dims the first axes of x and indices are in step: their places are put before the
 * indices. */
static void read_gather_nd(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), indices = tutti__onnx_sym(m, 1);
    int64_t batch = tutti__onnx_attr_int(m, "batch_dims", 0);
    if (!x.node || !indices.node || batch < 0 || batch >= TUTTI_MAX_RANK)
        return;
    indices = positive_rows(indices, x, batch);
    tutti_sym lead = tutti_sum(indices, .axes = TUTTI_AXES(-1), .keepdims = true);
    tutti_sym ones = tutti_ones_like(lead);
    for (int64_t i = batch - 1; i >= 0; i--)
        indices = tutti_concatenate(
            TUTTI_SYMS(tutti_cumsum(ones, (int)i, .exclusive = true), indices), .axis = -1);
    tutti__onnx_made(m, 0, tutti_gather_nd(x, indices));
}

/* axis may be any; depth and values may be computed: places == indices ? on : off. */
static void read_one_hot(tutti_onnx_import *m)
{
    int64_t depth;
    tutti_sym indices = tutti__onnx_sym(m, 0), values = tutti__onnx_sym(m, 2);
    if (!indices.node || !values.node || !tutti__onnx_read_int(m, 1, 0, &depth))
        return;
    int rank = tutti_sym_type(indices).rank;
    int64_t axis = tutti__onnx_attr_int(m, "axis", -1), dims[TUTTI_MAX_RANK];
    axis += axis < 0 ? rank + 1 : 0;
    if (axis < 0 || axis > rank || rank + 1 > TUTTI_MAX_RANK) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "axis %lld is not there", (long long)axis);
        return;
    }
    if (tutti_sym_type(indices).dtype != TUTTI_I64)
        indices = tutti_cast(indices, TUTTI_I64);
    tutti_sym size = tutti__scalar_like(indices, (double)depth);
    tutti_sym below = tutti_less(indices, 0);
    indices = tutti_where(below, tutti_add(indices, size), indices);
    for (int i = 0; i <= rank; i++)
        dims[i] = i == axis ? depth : 1;
    tutti_sym places = tutti_range(m->graph, 0, (double)depth, 1, TUTTI_I64);
    tutti_sym hit =
        tutti_equal(tutti_expand_dims(indices, (int)axis), (tutti_reshape)(places, rank + 1, dims));
    tutti_sym off = tutti_squeeze(tutti_slice_axis(values, 0, 0, 1), 0);
    tutti_sym on = tutti_squeeze(tutti_slice_axis(values, 0, 1, 2), 0);
    tutti__onnx_made(m, 0, tutti_where(hit, on, off));
}

static void read_scatter_elements(tutti_onnx_import *m)
{
    tutti__onnx_made(m, 0,
                     tutti_scatter_elements(tutti__onnx_sym(m, 0), tutti__onnx_sym(m, 1),
                                            tutti__onnx_sym(m, 2),
                                            tutti__onnx_attr_axis(m, "axis", 0),
                                            tutti__onnx_attr_string(m, "reduction", "none")));
}

static void read_scatter_nd(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), rows = tutti__onnx_sym(m, 1);
    tutti_sym updates = tutti__onnx_sym(m, 2);
    if (!x.node || !rows.node || !updates.node)
        return;
    tutti_sym y = tutti__formula_scatter(x, positive_rows(rows, x, 0), updates,
                                         tutti__onnx_attr_string(m, "reduction", "none"));
    if (!y.node)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "the length of its rows must be known");
    tutti__onnx_made(m, 0, y);
}

const tutti_onnx_op tutti_onnx_gather = {
    .op = "gather",
    .type = "Gather",
    .write = write_gather,
    .read = read_gather,
};

const tutti_onnx_op tutti_onnx_gather_elements = {
    .op = "take_along",
    .type = "GatherElements",
    .write = write_gather,
    .read = read_gather_elements,
};

const tutti_onnx_op tutti_onnx_gather_nd = {
    .op = "gather_nd",
    .type = "GatherND",
    .write = write_gather_nd,
    .read = read_gather_nd,
};

const tutti_onnx_op tutti_onnx_one_hot = {
    .op = "one_hot",
    .type = "OneHot",
    .write = write_one_hot,
    .read = read_one_hot,
};

const tutti_onnx_op tutti_onnx_scatter_elements = {
    .op = "scatter_elements",
    .type = "ScatterElements",
    .write = write_scatter_elements,
    .read = read_scatter_elements,
};

const tutti_onnx_op tutti_onnx_scatter = {
    .type = "Scatter",
    .read = read_scatter_elements,
};

const tutti_onnx_op tutti_onnx_scatter_nd = {
    .type = "ScatterND",
    .read = read_scatter_nd,
};
