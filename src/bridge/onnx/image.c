/* image.c: sampling, boxes, and channels that become pixels. */
#include "bridge/onnx.h"

#include <string.h>

/* ---- sampling ---- */

static void read_grid_sample(tutti_onnx_import *m)
{
    const char *mode = tutti__onnx_attr_string(m, "mode", "linear");
    bool linear = strcmp(mode, "bilinear") == 0 || strcmp(mode, "linear") == 0;
    bool cubic = strcmp(mode, "bicubic") == 0 || strcmp(mode, "cubic") == 0;
    tutti_sym y =
        tutti_grid_sample(tutti__onnx_sym_last(m, 0), tutti__onnx_sym(m, 1),
                          .mode = linear  ? "linear"
                                  : cubic ? "cubic"
                                          : mode,
                          .padding = tutti__onnx_attr_string(m, "padding_mode", "zeros"),
                          .align_corners = tutti__onnx_attr_int(m, "align_corners", 0) != 0);
    tutti__onnx_made_as(m, 0, y, true);
}

/* Positions from -1 to 1 along an axis of `size`: their centres, or with corners the ends too. */
static tutti_sym line(tutti_onnx_import *m, int64_t size, tutti_dtype dtype, bool corners)
{
    double step = corners ? (size > 1 ? 2.0 / (double)(size - 1) : 0) : 2.0 / (double)size;
    tutti_sym places = tutti_range(m->graph, 0, (double)size, 1, TUTTI_F64);
    places = tutti_add(tutti_mul(places, step), corners ? -1 : -1 + step / 2);
    return tutti_cast(places, dtype);
}

/* grid[n, …, :] = theta[n] (x, y, (z), 1). */
static void read_affine_grid(tutti_onnx_import *m)
{
    tutti_sym theta = tutti__onnx_sym(m, 0), parts[4];
    tutti_axes size;
    bool corners = tutti__onnx_attr_int(m, "align_corners", 0) != 0;
    if (!theta.node || !tutti__onnx_read_ints(m, 1, "the size", &size) || size.count < 4 ||
        size.count > 5)
        return;
    int axes = size.count - 2;
    const int64_t *dims = size.values + 2;
    tutti_dtype dtype = tutti_sym_type(theta).dtype;
    for (int i = 0; i <= axes; i++) { /* x runs along the last axis, y along the one before it */
        int along = axes - 1 - i;
        int64_t flat[3] = {1, 1, 1};
        tutti_sym ones = (tutti_fill)(m->graph, dtype, 1, axes, dims);
        if (i < axes)
            flat[along] = dims[along];
        parts[i] = i == axes ? ones
                             : tutti_mul(ones, (tutti_reshape)(line(m, dims[along], dtype, corners),
                                                               axes, flat));
    }
    tutti_sym places = tutti_reshape(tutti_stack(axes + 1, parts, .axis = axes), -1, axes + 1);
    tutti_sym grid = tutti_matmul(places, theta, .transpose_b = true); /* [n, places, axes] */
    int64_t shape[5] = {-1};
    for (int i = 0; i < axes; i++)
        shape[i + 1] = dims[i];
    shape[axes + 1] = axes;
    tutti__onnx_made(m, 0, (tutti_reshape)(grid, axes + 2, shape));
}

/* ---- boxes ---- */

static void read_nms(tutti_onnx_import *m)
{
    double most = 0, overlap = 0, score = 0;
    if (!tutti__onnx_read_number(m, 2, 0, &most) || !tutti__onnx_read_number(m, 3, 0, &overlap) ||
        !tutti__onnx_read_number(m, 4, 0, &score))
        return;
    tutti_sym y = tutti_non_max_suppression(
        tutti__onnx_sym(m, 0), tutti__onnx_sym(m, 1), .max_output = (int64_t)most,
        .iou_threshold = overlap, .score_threshold = score,
        .has_score_threshold = tutti__onnx_has(m, 4),
        .center_point_box = tutti__onnx_attr_int(m, "center_point_box", 0) != 0);
    tutti__onnx_made(m, 0, y);
}

/* ---- channels and pixels ---- */

/* [n, c, h, w] of which all but n are known. */
static bool known_image(tutti_onnx_import *m, tutti_sym x, int64_t block)
{
    tutti_type type = x.node ? tutti_sym_type(x) : (tutti_type){0};
    bool good = x.node && type.rank == 4 && block > 0;
    for (int i = 1; good && i < 4; i++)
        good = type.dims[i] >= 0;
    if (!good)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                              "wants images [batch, channels, height, width] of known size");
    return good;
}

static void read_depth_to_space(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), y;
    int64_t b = tutti__onnx_attr_int(m, "blocksize", 1);
    bool crd = strcmp(tutti__onnx_attr_string(m, "mode", "DCR"), "CRD") == 0;
    if (!known_image(m, x, b))
        return;
    tutti_type t = tutti_sym_type(x);
    int64_t c = t.dims[1] / (b * b), h = t.dims[2], w = t.dims[3];
    if (crd)
        y = tutti_transpose(tutti_reshape(x, -1, c, b, b, h, w), 0, 1, 4, 2, 5, 3);
    else
        y = tutti_transpose(tutti_reshape(x, -1, b, b, c, h, w), 0, 3, 4, 1, 5, 2);
    tutti__onnx_made(m, 0, tutti_reshape(y, -1, c, h * b, w * b));
}

static void read_space_to_depth(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    int64_t b = tutti__onnx_attr_int(m, "blocksize", 1);
    if (!known_image(m, x, b))
        return;
    tutti_type t = tutti_sym_type(x);
    int64_t c = t.dims[1], h = t.dims[2] / b, w = t.dims[3] / b;
    bool crd = strcmp(tutti__onnx_attr_string(m, "mode", "DCR"), "CRD") == 0;
    tutti_sym parts = tutti_reshape(x, -1, c, h, b, w, b);
    tutti_sym y =
        crd ? tutti_transpose(parts, 0, 1, 3, 5, 2, 4) : tutti_transpose(parts, 0, 3, 5, 1, 2, 4);
    tutti__onnx_made(m, 0, tutti_reshape(y, -1, c * b * b, h, w));
}

/* Cut or padded with zeros on both sides to the sizes; the odd one is cut off, and added, behind.
 */
static void read_center_crop_pad(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    tutti_axes wanted, axes;
    if (!x.node || !tutti__onnx_read_ints(m, 1, "the sizes", &wanted) ||
        !tutti__onnx_read_axes(m, 9, "axes", &axes))
        return;
    tutti_type type = tutti_sym_type(x);
    tutti_pad_options pad = {.struct_size = sizeof pad};
    pad.before.count = pad.after.count = type.rank;
    for (int i = 0; m->status == TUTTI_OK && i < wanted.count; i++) {
        int64_t axis = axes.count > 0 ? axes.values[i % axes.count] : i;
        axis += axis < 0 ? type.rank : 0;
        if (axis < 0 || axis >= type.rank || type.dims[axis] < 0) {
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "its dimensions must be known");
            return;
        }
        int64_t have = type.dims[axis], want = wanted.values[i];
        if (want < have)
            x = tutti_slice_axis(x, (int)axis, (have - want) / 2, (have - want) / 2 + want);
        pad.before.values[axis] = want > have ? (want - have) / 2 : 0;
        pad.after.values[axis] = want > have ? want - have - pad.before.values[axis] : 0;
    }
    tutti__onnx_made(m, 0, tutti_pad_with(x, &pad));
}

const tutti_onnx_op tutti_onnx_grid_sample = {
    .type = "GridSample",
    .read = read_grid_sample,
};

const tutti_onnx_op tutti_onnx_affine_grid = {
    .type = "AffineGrid",
    .read = read_affine_grid,
};

const tutti_onnx_op tutti_onnx_non_max_suppression = {
    .type = "NonMaxSuppression",
    .read = read_nms,
};

const tutti_onnx_op tutti_onnx_depth_to_space = {
    .type = "DepthToSpace",
    .read = read_depth_to_space,
};

const tutti_onnx_op tutti_onnx_space_to_depth = {
    .type = "SpaceToDepth",
    .read = read_space_to_depth,
};

const tutti_onnx_op tutti_onnx_center_crop_pad = {
    .type = "CenterCropPad",
    .read = read_center_crop_pad,
};
