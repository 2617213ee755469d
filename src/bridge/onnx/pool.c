/* pool.c: pooling, by windows and over everything. */
#include "bridge/onnx.h"
#include "bridge/onnx/window.h"

#include <string.h>

static void write_pool(tutti_onnx_export *x)
{
    const int64_t *window;
    const char *y = ONNX(x, x->rule->type, tutti__onnx_in_first(x, 0));
    NODE_INTS(x, "window", &window);
    tutti__onnx_set_ints(x, "kernel_shape", 2, window);
    tutti__onnx_set_window(x, window);
    tutti__onnx_out_as(x, 0, y, true);
}

static bool check_pool(tutti_onnx_import *m, const tutti_onnx_window *w, int axes)
{
    bool padded =
        w->pads[0] || w->pads[1] || w->pads[2] || w->pads[3] || strcmp(w->padding, "same") == 0;
    const char *wrong =
        axes < 1 || axes > 2                                        ? "is over more than 2 axes"
        : tutti__onnx_attr_int(m, "ceil_mode", 0)                   ? "ceil_mode is not supported"
        : tutti__onnx_names(m, 1)                                   ? "its indices are used"
        : w->dilations[0] != 1 || w->dilations[1] != 1              ? "dilations are not supported"
        : padded && tutti__onnx_attr_int(m, "count_include_pad", 0) ? "padding counts in the mean"
                                                                    : NULL;
    if (wrong)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "%s", wrong);
    return wrong == NULL;
}

static void read_pool(tutti_onnx_import *m)
{
    const int64_t *window;
    tutti_onnx_window w;
    int axes = tutti__onnx_attr_ints(m, "kernel_shape", &window);
    if (axes < 1 || axes > 2 || !tutti__onnx_read_window(m, axes, &w) || !check_pool(m, &w, axes)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "is over %d axes; 1 and 2 are supported", axes);
        return;
    }
    bool largest = strcmp(m->rule->op, "max_pool2d") == 0;
    tutti_sym x = tutti__onnx_sym_last(m, 0), y;
    tutti_pool1d_options one = {.struct_size = sizeof one,
                                .window = window[0],
                                .stride = w.strides[0],
                                .padding = w.padding,
                                .pads = {w.pads[0], w.pads[1]}};
    tutti_pool2d_options two = {.struct_size = sizeof two,
                                .window = {window[0], window[axes - 1]},
                                .strides = {w.strides[0], w.strides[1]},
                                .padding = w.padding,
                                .pads = {w.pads[0], w.pads[1], w.pads[2], w.pads[3]}};
    if (axes == 1)
        y = largest ? (tutti_max_pool1d_of)(x, &one) : (tutti_average_pool1d_of)(x, &one);
    else
        y = largest ? (tutti_max_pool2d_of)(x, &two) : (tutti_average_pool2d_of)(x, &two);
    tutti__onnx_made_as(m, 0, y, true);
}

static void read_global(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym_last(m, 0), y;
    tutti_axes axes = {0};
    if (!x.node)
        return;
    for (int i = 1; i < tutti_sym_type(x).rank - 1; i++)
        axes.values[axes.count++] = i;
    if (strcmp(m->rule->type, "GlobalMaxPool") == 0)
        y = tutti_max(x, .axes = axes, .keep_dims = true);
    else
        y = tutti_mean(x, .axes = axes, .keep_dims = true);
    tutti__onnx_made_as(m, 0, y, true);
}

const tutti_onnx_op tutti_onnx_max_pool = {
    .op = "max_pool2d",
    .type = "MaxPool",
    .write = write_pool,
    .read = read_pool,
};

const tutti_onnx_op tutti_onnx_average_pool = {
    .op = "average_pool2d",
    .type = "AveragePool",
    .write = write_pool,
    .read = read_pool,
};

const tutti_onnx_op tutti_onnx_global_max_pool = {
    .type = "GlobalMaxPool",
    .read = read_global,
};

const tutti_onnx_op tutti_onnx_global_average_pool = {
    .type = "GlobalAveragePool",
    .read = read_global,
};
