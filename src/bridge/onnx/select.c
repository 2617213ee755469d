/* select.c: what picks elements by their values, so that sizes depend on data. */
#include "bridge/onnx.h"

/* Of a scalar the result is [0, n] here and by ONNX's text, [1, n] in onnxruntime. */
static void write_nonzero(tutti_onnx_export *x)
{
    if (tutti__onnx_type_in(x, 0)->rank == 0)
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED, "is of a scalar, runtimes differ there");
    else
        tutti__onnx_write_plain(x);
}

static void read_nonzero(tutti_onnx_import *m)
{
    tutti__onnx_made(m, 0, tutti_nonzero(tutti__onnx_sym(m, 0)));
}

/* The slices of x along an axis (without: its elements) whose condition is true; conditions past
 * the end are false. */
static void read_compress(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), condition = tutti__onnx_sym(m, 1);
    if (!x.node || !condition.node)
        return;
    int axis = 0;
    if (tutti__onnx_attr(m->node, "axis", ONNX_INT))
        axis = tutti__onnx_attr_axis(m, "axis", 0);
    else
        x = tutti_reshape(x, -1);
    tutti_sym places = tutti_reshape(tutti_nonzero(condition), -1);
    tutti__onnx_made(m, 0, tutti_gather(x, places, axis));
}

static void read_unique(tutti_onnx_import *m)
{
    bool along = tutti__onnx_attr(m->node, "axis", ONNX_INT) != NULL;
    tutti_sym y = tutti_unique(tutti__onnx_sym(m, 0), .along_axis = along,
                               .axis = tutti__onnx_attr_axis(m, "axis", 0),
                               .unsorted = tutti__onnx_attr_int(m, "sorted", 1) == 0);
    for (int i = 0; y.node && i < 4; i++)
        tutti__onnx_made(m, i, tutti_sym_output(y, i));
}

const tutti_onnx_op tutti_onnx_nonzero = {
    .op = "nonzero",
    .type = "NonZero",
    .write = write_nonzero,
    .read = read_nonzero,
};

const tutti_onnx_op tutti_onnx_compress = {
    .type = "Compress",
    .read = read_compress,
};

const tutti_onnx_op tutti_onnx_unique = {
    .type = "Unique",
    .read = read_unique,
    .note = "of numbers",
};
