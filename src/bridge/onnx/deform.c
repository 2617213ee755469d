/* deform.c: deformable convolution. */
#include "bridge/onnx.h"
#include "bridge/onnx/patterns.h"
#include "bridge/onnx/window.h"

/* A constant [1, places, …] of the window's places, without offsets: for output (r, c) and place k
 * the pixel (r stride - pad + row of k dilation, the same for columns), as [1, k, rows, columns,
 * 2], (y, x). */
static tutti_sym raster(tutti_onnx_import *m, const tutti_onnx_window *w, const int64_t size[2],
                        int64_t rows, int64_t columns)
{
    tutti_tensor *tensor;
    int64_t places = size[0] * size[1], at = 0;
    if (tutti_tensor_create(TUTTI_F32, 5, (int64_t[]){1, places, rows, columns, 2}, &tensor) !=
        TUTTI_OK) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return TUTTI_NO_SYM;
    }
    for (int64_t k = 0; k < places; k++)
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++) {
                int64_t y = r * w->strides[0] - w->pads[0] + k / size[1] * w->dilations[0];
                int64_t x = c * w->strides[1] - w->pads[2] + k % size[1] * w->dilations[1];
                tutti_tensor_set(tensor, at++, (double)y);
                tutti_tensor_set(tensor, at++, (double)x);
            }
    tutti_sym sym = tutti_constant(m->graph, tensor);
    tutti_tensor_release(tensor);
    return sym;
}

typedef struct deform {
    tutti_onnx_window w;
    int64_t size[3], groups, parts; /* parts: groups of channels with offsets of their own */
    int64_t rows, columns, places, channels, height, width;
} deform;

/* x [batch, height, width, channels / parts] at the moved places of part p, with its mask:
 * [batch, rows, columns, places, channels / parts]. */
static tutti_sym sampled(tutti_onnx_import *m, const deform *d, tutti_sym x, int64_t p)
{
    int64_t n = d->places, each = d->channels / d->parts;
    tutti_sym offset = tutti_slice_axis(tutti__onnx_sym(m, 2), 1, 2 * n * p, 2 * n * (p + 1));
    offset = tutti_reshape(offset, -1, n, 2, d->rows, d->columns);
    tutti_sym at = tutti_add(tutti_transpose(offset, 0, 1, 3, 4, 2),
                             raster(m, &d->w, d->size, d->rows, d->columns));
    tutti_sym y = tutti_slice_axis(at, -1, 0, 1), z = tutti_slice_axis(at, -1, 1, 2);
    double h = (double)d->height, w = (double)d->width;
    /* Pixels as places from -1 to 1, edge to edge: (2 i + 1) / size - 1. */
    y = tutti_add(tutti_mul(y, 2 / h), 1 / h - 1);
    z = tutti_add(tutti_mul(z, 2 / w), 1 / w - 1);
    tutti_sym grid = tutti_reshape(tutti_concatenate(TUTTI_SYMS(z, y), .axis = -1), -1, n * d->rows,
                                   d->columns, 2);
    tutti_sym part = tutti_slice_axis(x, -1, p * each, (p + 1) * each);
    tutti_sym v = tutti_grid_sample(part, grid, .mode = "linear", .padding = "zeros");
    v = tutti_reshape(v, -1, n, d->rows, d->columns, each);
    if (tutti__onnx_has(m, 4)) {
        tutti_sym mask = tutti_slice_axis(tutti__onnx_sym(m, 4), 1, n * p, n * (p + 1));
        v = tutti_mul(v, tutti_expand_dims(mask, -1));
    }
    return tutti_transpose(v, 0, 2, 3, 1, 4);
}

static bool deform_settle(tutti_onnx_import *m, tutti_sym x, deform *d)
{
    tutti_type type = tutti_sym_type(x), at = tutti_sym_type(tutti__onnx_sym(m, 2));
    d->groups = tutti__onnx_attr_int(m, "group", 1);
    d->parts = tutti__onnx_attr_int(m, "offset_group", 1);
    d->places = d->size[0] * d->size[1];
    d->height = type.dims[1];
    d->width = type.dims[2];
    d->channels = type.dims[3];
    d->rows = at.rank == 4 ? at.dims[2] : -1;
    d->columns = at.rank == 4 ? at.dims[3] : -1;
    if (d->height > 0 && d->width > 0 && d->channels > 0 && d->parts > 0 && d->groups > 0 &&
        d->channels % d->parts == 0 && d->channels % d->groups == 0) {
        for (int i = 0; i < 2; i++) {
            int64_t reach = (d->size[i] - 1) * d->w.dilations[i] + 1, in = type.dims[1 + i];
            int64_t out =
                (in + d->w.pads[2 * i] + d->w.pads[2 * i + 1] - reach) / d->w.strides[i] + 1;
            *(i ? &d->columns : &d->rows) = out;
        }
        if (d->rows > 0 && d->columns > 0)
            return true;
    }
    tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "needs known dimensions that fit each other");
    return false;
}

/* The samples of all parts by the weights [filters, channels / groups, height, width]. */
static void read_deform(tutti_onnx_import *m)
{
    deform d = {0};
    tutti_sym x = tutti__onnx_sym_last(m, 0), w = tutti__onnx_sym(m, 1), parts[64];
    if (!x.node || !w.node || tutti__onnx_kernel_type(m, 1, d.size) != 4 ||
        !tutti__onnx_read_window(m, x, 2, d.size, &d.w) || !deform_settle(m, x, &d))
        return;
    int64_t filters = tutti_sym_type(w).dims[0], each = d.channels / d.groups;
    if (d.parts > 64 || d.groups > 64 || filters % d.groups != 0) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "has too many groups");
        return;
    }
    for (int64_t p = 0; p < d.parts; p++)
        parts[p] = sampled(m, &d, x, p);
    tutti_sym v = tutti_concatenate((int)d.parts, parts, .axis = -1);
    for (int64_t g = 0; g < d.groups; g++) {
        tutti_sym own = tutti_slice_axis(v, -1, g * each, (g + 1) * each);
        tutti_sym kernel =
            tutti_slice_axis(w, 0, g * filters / d.groups, (g + 1) * filters / d.groups);
        kernel =
            tutti_reshape(tutti_transpose(kernel, 2, 3, 1, 0), d.places * each, filters / d.groups);
        parts[g] = tutti_matmul(tutti_reshape(own, -1, d.rows, d.columns, d.places * each), kernel);
    }
    tutti_sym y = tutti_concatenate((int)d.groups, parts, .axis = -1);
    if (tutti__onnx_has(m, 3))
        y = tutti_add(y, tutti__onnx_sym(m, 3));
    tutti__onnx_made_as(m, 0, y, true);
}

const tutti_onnx_op tutti_onnx_deform_conv = {
    .type = "DeformConv",
    .read = read_deform,
    .note = "known dimensions but the batch",
};
