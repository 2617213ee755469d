/* conv_write.c: convolution over volumes, and transposed convolution, which is the gradient of a
 * convolution's input; writing them. ONNX's pads are all starts, then all ends, ours by axis. */
#include <string.h>

#include "bridge/onnx.h"
#include "bridge/onnx/patterns.h"

/* What a node says of its windows, over 2 or 3 axes. */
typedef struct windows {
    int axes;
    const int64_t *strides, *dilations, *pads;
    const char *padding;
    int64_t reach[3]; /* of a window: (size - 1) dilation + 1 */
} windows;

static bool read_windows(tutti_onnx_export *x, int kernel, windows *w)
{
    const tutti_type *type = tutti__onnx_type_in(x, kernel);
    w->axes = type->rank - 2;
    NODE_INTS(x, "strides", &w->strides);
    NODE_INTS(x, "dilations", &w->dilations);
    NODE_INTS(x, "pads", &w->pads);
    w->padding = NODE_STR(x, "padding");
    for (int i = 0; i < w->axes; i++) {
        w->reach[i] = (type->dims[i] - 1) * w->dilations[i] + 1;
        if (type->dims[i] < 0) {
            tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED, "the size of its kernel is not known");
            return false;
        }
    }
    return true;
}

static void set_windows(tutti_onnx_export *x, int kernel, const windows *w, const int64_t *pads)
{
    tutti__onnx_set_ints(x, "kernel_shape", w->axes, tutti__onnx_type_in(x, kernel)->dims);
    tutti__onnx_set_ints(x, "strides", w->axes, w->strides);
    tutti__onnx_set_ints(x, "dilations", w->axes, w->dilations);
    tutti__onnx_set_int(x, "group", NODE_INT(x, "groups"));
    tutti__onnx_set_ints(x, "pads", 2 * w->axes, pads);
}

static void write_conv3d(tutti_onnx_export *x)
{
    const int64_t *in = tutti__onnx_type_in(x, 0)->dims + 1;
    int64_t pads[6] = {0};
    windows w;
    if (!read_windows(x, 1, &w))
        return;
    for (int i = 0; i < w.axes; i++) {
        bool same = strcmp(w.padding, "same") == 0;
        if (same && in[i] < 0) {
            tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED,
                                   "padding \"same\" needs known dimensions; give it the input's");
            return;
        }
        int64_t out = (in[i] + w.strides[i] - 1) / w.strides[i];
        int64_t all = same ? (out - 1) * w.strides[i] + w.reach[i] - in[i] : 0;
        all = all > 0 ? all : 0;
        bool given = strcmp(w.padding, "explicit") == 0;
        pads[i] = given ? w.pads[2 * i] : all / 2;
        pads[w.axes + i] = given ? w.pads[2 * i + 1] : all - all / 2;
    }
    const char *image = tutti__onnx_in_first(x, 0);
    const char *y = ONNX(x, "Conv", image, tutti__onnx_write_kernel(x, 1));
    set_windows(x, 1, &w, pads);
    tutti__onnx_out_as(x, 0, y, true);
}

/* out = (in - 1) stride + reach - pads + more: `more` from what the node or its type says. A
 * negative one is padding behind. */
static void settle_size(const tutti_onnx_export *x, const windows *w, int i, int64_t *pads,
                        int64_t *more)
{
    const int64_t *size;
    int64_t in = tutti__onnx_type_in(x, 1)->dims[i + 1], out = x->node->types[0].dims[i + 1];
    NODE_INTS(x, "size", &size);
    bool sized = in >= 0 && out >= 0, same = strcmp(w->padding, "same") == 0;
    int64_t spread = (in - 1) * w->strides[i] + w->reach[i];
    int64_t all = !same ? 0 : sized ? spread - out : w->reach[i] - w->strides[i];
    all = all > 0 ? all : 0;
    bool given = strcmp(w->padding, "explicit") == 0;
    pads[i] = given ? w->pads[2 * i] : all / 2;
    pads[w->axes + i] = given ? w->pads[2 * i + 1] : all - all / 2;
    if (sized)
        *more = out - (spread - pads[i] - pads[w->axes + i]);
    else
        *more = same ? w->strides[i] - w->reach[i] + all : -size[i];
    if (*more < 0) {
        pads[w->axes + i] -= *more;
        *more = 0;
    }
}

static void write_transposed(tutti_onnx_export *x)
{
    int64_t pads[6] = {0}, more[3] = {0};
    windows w;
    if (x->node->input_count != 2) {
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED, "is a gradient, no transposed convolution");
        return;
    }
    if (!read_windows(x, 0, &w))
        return;
    for (int i = 0; i < w.axes; i++)
        settle_size(x, &w, i, pads, &more[i]);
    const char *image = tutti__onnx_in_first(x, 1);
    const char *y = ONNX(x, "ConvTranspose", image, tutti__onnx_write_kernel(x, 0));
    set_windows(x, 0, &w, pads);
    tutti__onnx_set_ints(x, "output_padding", w.axes, more);
    tutti__onnx_out_as(x, 0, y, true);
}

/* Volumes only from opset 20 on; modes have other names then. */
static void write_grid_sample(tutti_onnx_export *x)
{
    int rank = tutti__onnx_type_in(x, 0)->rank;
    const char *mode = NODE_STR(x, "mode");
    bool named = x->onnx->opset >= 20, nearest = strcmp(mode, "nearest") == 0;
    if (rank != 4 && (rank != 5 || !named)) {
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED,
                               "samples along %d axes; opset %lld has 2, and 3 from opset 20 on",
                               rank - 2, (long long)x->onnx->opset);
        return;
    }
    const char *image = tutti__onnx_in_first(x, 0);
    const char *y = ONNX(x, "GridSample", image, tutti__onnx_in(x, 1));
    if (!named && !nearest)
        mode = strcmp(mode, "linear") == 0 ? "bilinear" : "bicubic";
    tutti__onnx_set_string(x, "mode", mode);
    tutti__onnx_set_string(x, "padding_mode", NODE_STR(x, "padding"));
    tutti__onnx_set_int(x, "align_corners", NODE_INT(x, "align_corners") != 0);
    tutti__onnx_out_as(x, 0, y, true);
}

const tutti_onnx_op tutti_onnx_conv3d = {
    .op = "conv3d",
    .write = write_conv3d,
};

const tutti_onnx_op tutti_onnx_conv2d_transposed = {
    .op = "conv2d_backward_input",
    .write = write_transposed,
};

const tutti_onnx_op tutti_onnx_conv3d_transposed = {
    .op = "conv3d_backward_input",
    .write = write_transposed,
};

const tutti_onnx_op tutti_onnx_grid_sampled = {
    .op = "grid_sample",
    .write = write_grid_sample,
};
