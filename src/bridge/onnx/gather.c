/* gather.c: picking elements by index. */
#include "bridge/onnx.h"

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
    const char *both = tutti__onnx_constant(x, values);
    const char *y = ONNX(x, "OneHot", indices, depth, both);
    tutti__onnx_set_int(x, "axis", -1);
    tutti__onnx_out(x, 0, dtype == wanted ? y : tutti__onnx_cast(x, y, wanted));
}

/* ---- reading ---- */

/* Negative indices count from the end: constants are made positive here. */
static tutti_sym positive_indices(tutti_onnx_import *m, tutti_sym x, int axis)
{
    const tutti_onnx_known *known = tutti__onnx_input(m, 1);
    bool negative = false;
    int64_t size = tutti_sym_type(x).dims[axis];
    for (int64_t i = 0; known && known->value && i < tutti_tensor_count(known->value); i++)
        negative = negative || tutti_tensor_get_int(known->value, i) < 0;
    if (!negative)
        return tutti__onnx_sym(m, 1);
    tutti_sym size_sym =
        size >= 0 ? tutti_scalar_like(tutti__onnx_sym(m, 1), (double)size) : tutti_size(x, axis);
    tutti_sym indices = tutti__onnx_sym(m, 1);
    if (size < 0 && tutti_sym_type(indices).dtype != TUTTI_I64)
        indices = tutti_cast(indices, TUTTI_I64);
    return tutti_mod(indices, size_sym);
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
                     tutti_take_along(tutti__onnx_sym(m, 0), tutti__onnx_sym(m, 1),
                                      tutti__onnx_attr_axis(m, "axis", 0)));
}

static void read_gather_nd(tutti_onnx_import *m)
{
    if (tutti__onnx_attr_int(m, "batch_dims", 0) != 0)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "batch_dims is not supported");
    else
        tutti__onnx_made(m, 0, tutti_gather_nd(tutti__onnx_sym(m, 0), tutti__onnx_sym(m, 1)));
}

static void read_one_hot(tutti_onnx_import *m)
{
    int64_t depth;
    const tutti_tensor *values = tutti__onnx_read_constant(m, 2, "the values");
    if (!values || !tutti__onnx_read_int(m, 1, 0, &depth))
        return;
    if (tutti_tensor_count(values) != 2 || tutti__onnx_attr_int(m, "axis", -1) != -1) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "only a last axis of two values is supported");
        return;
    }
    tutti_attr attrs[] = {TUTTI_INT("depth", depth), TUTTI_FLOAT("on", tutti_tensor_get(values, 1)),
                          TUTTI_FLOAT("off", tutti_tensor_get(values, 0)),
                          TUTTI_INT("dtype", tutti_tensor_dtype(values))};
    tutti_sym indices = tutti__onnx_sym(m, 0);
    if (indices.node)
        tutti__onnx_made(m, 0, tutti_apply_op(m->graph, "one_hot", 1, &indices, 4, attrs));
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
