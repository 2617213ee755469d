/* windows.c: TensorFlow's convolutions, pooling, resizing, and images cut into blocks.
 * Images are [batch, height, width, channels] on both sides; of NCHW they are turned before and
 * behind. */
#include "bridge/graphdef/rules.h"

#include <string.h>

/* ---- order of dimensions ---- */

static bool channels_first(const tutti_graphdef_import *m)
{
    const char *format = attr_string(m, "data_format", "NHWC");
    return strncmp(format, "NC", 2) == 0;
}

tutti_sym tutti__graphdef_channels_last(const tutti_graphdef_import *m, tutti_sym x)
{
    int64_t order[TUTTI_MAX_RANK] = {0};
    int rank = tutti_sym_ok(x) ? tutti_sym_type(x).rank : 0;
    if (!channels_first(m) || rank < 3)
        return x;
    for (int i = 1; i < rank; i++)
        order[i] = i + 1 < rank ? i + 1 : 1;
    return (tutti_transpose)(x, rank, order);
}

tutti_sym tutti__graphdef_channels_back(const tutti_graphdef_import *m, tutti_sym x)
{
    int64_t order[TUTTI_MAX_RANK] = {0};
    int rank = tutti_sym_ok(x) ? tutti_sym_type(x).rank : 0;
    if (!channels_first(m) || rank < 3)
        return x;
    for (int i = 1; i < rank; i++)
        order[i] = i == 1 ? rank - 1 : i - 1;
    return (tutti_transpose)(x, rank, order);
}

/* ---- windows ---- */

typedef struct window {
    int64_t strides[3], dilations[3], size[3], pads[6];
    const char *padding;
} window;

/* Of `axes` dimensions between batch and channels. */
static bool read_window(tutti_graphdef_import *m, int axes, window *w)
{
    static const char *const names[] = {"strides", "dilations", "ksize"};
    int64_t *to[] = {w->strides, w->dilations, w->size};
    const char *padding = attr_string(m, "padding", "VALID");
    int first = channels_first(m) ? 2 : 1;
    *w = (window){.strides = {1, 1, 1}, .dilations = {1, 1, 1}, .size = {1, 1, 1}};
    w->padding = strcmp(padding, "SAME") == 0 ? "same" : "valid";
    for (int i = 0; i < 3; i++) {
        const tutti_graphdef_attr *attr = tutti__graphdef_attr(m->node, names[i]);
        for (int k = 0; attr && attr->ints.count == (size_t)axes + 2 && k < axes; k++)
            to[i][k] = attr->ints.items[k + first];
    }
    const tutti_graphdef_attr *pads = tutti__graphdef_attr(m->node, "explicit_paddings");
    if (strcmp(padding, "EXPLICIT") == 0 && pads && pads->ints.count == 2 * ((size_t)axes + 2)) {
        w->padding = "explicit";
        for (int k = 0; k < 2 * axes; k++)
            w->pads[k] = pads->ints.items[k + 2 * first];
    }
    return m->status == TUTTI_OK;
}

static int64_t groups_of(tutti_sym x, tutti_sym kernel)
{
    tutti_type image = tutti_sym_type(x), weights = tutti_sym_type(kernel);
    int64_t channels = image.rank == weights.rank ? image.dims[image.rank - 1] : 0;
    int64_t each = weights.rank > 1 ? weights.dims[weights.rank - 2] : 0;
    return channels > 0 && each > 0 ? channels / each : 1;
}

static void read_conv(tutti_graphdef_import *m)
{
    window w;
    tutti_sym x = IN(0), kernel = IN(1);
    if (m->status != TUTTI_OK || !read_window(m, 2, &w))
        return;
    x = tutti__graphdef_channels_last(m, x);
    tutti_conv2d_options o = {.struct_size = sizeof o,
                              .strides = {w.strides[0], w.strides[1]},
                              .dilations = {w.dilations[0], w.dilations[1]},
                              .padding = w.padding,
                              .pads = {w.pads[0], w.pads[1], w.pads[2], w.pads[3]}};
    bool plain = strcmp(m->node->op, "Conv2D") == 0;
    o.groups = plain && tutti_sym_ok(x) ? groups_of(x, kernel) : 1;
    made(m,
         tutti__graphdef_channels_back(m, plain ? tutti_nn_conv2d_with(x, kernel, &o)
                                                : tutti_nn_depthwise_conv2d_with(x, kernel, &o)));
}

static void read_conv3d(tutti_graphdef_import *m)
{
    window w;
    tutti_sym x = IN(0), kernel = IN(1);
    if (m->status != TUTTI_OK || !read_window(m, 3, &w))
        return;
    x = tutti__graphdef_channels_last(m, x);
    tutti_conv3d_options o = {.struct_size = sizeof o, .padding = w.padding, .groups = 1};
    memcpy(o.strides, w.strides, sizeof o.strides);
    memcpy(o.dilations, w.dilations, sizeof o.dilations);
    memcpy(o.pads, w.pads, sizeof o.pads);
    if (tutti_sym_ok(x))
        o.groups = groups_of(x, kernel);
    made(m, tutti__graphdef_channels_back(m, tutti_nn_conv3d_with(x, kernel, &o)));
}

/* The size of the image, as far as it is known: axes of input 0. */
static void read_sizes(tutti_graphdef_import *m, int axes, int64_t *ret)
{
    tutti_axes sizes;
    int first = channels_first(m) ? 2 : 1;
    if (!tutti__graphdef_shape_in(m, 0, &sizes) || sizes.count != axes + 2)
        return;
    for (int i = 0; i < axes; i++)
        if (sizes.values[first + i] <= 0)
            return;
    for (int i = 0; i < axes; i++)
        ret[i] = sizes.values[first + i];
}

/* Sizes of the image, kernel, gradient: Keras' transposed convolution. */
static void read_conv_transpose(tutti_graphdef_import *m)
{
    window w;
    tutti_conv2d_transpose_options o = {.struct_size = sizeof o};
    tutti_sym kernel = IN(1), x = IN(2);
    if (m->status != TUTTI_OK || !read_window(m, 2, &w))
        return;
    o.padding = w.padding;
    memcpy(o.strides, w.strides, sizeof o.strides);
    memcpy(o.dilations, w.dilations, sizeof o.dilations);
    memcpy(o.pads, w.pads, sizeof o.pads);
    read_sizes(m, 2, o.size);
    x = tutti__graphdef_channels_last(m, x);
    made(m, tutti__graphdef_channels_back(m, tutti_nn_conv2d_transpose_with(x, kernel, &o)));
}

static void read_conv3d_transpose(tutti_graphdef_import *m)
{
    window w;
    tutti_conv3d_transpose_options o = {.struct_size = sizeof o};
    tutti_sym kernel = IN(1), x = IN(2);
    if (m->status != TUTTI_OK || !read_window(m, 3, &w))
        return;
    o.padding = w.padding;
    memcpy(o.strides, w.strides, sizeof o.strides);
    memcpy(o.dilations, w.dilations, sizeof o.dilations);
    memcpy(o.pads, w.pads, sizeof o.pads);
    read_sizes(m, 3, o.size);
    x = tutti__graphdef_channels_last(m, x);
    made(m, tutti__graphdef_channels_back(m, tutti_nn_conv3d_transpose_with(x, kernel, &o)));
}

static void read_pool(tutti_graphdef_import *m)
{
    window w;
    tutti_sym x = IN(0);
    if (m->status != TUTTI_OK || !read_window(m, 2, &w))
        return;
    x = tutti__graphdef_channels_last(m, x);
    tutti_pool2d_options o = {.struct_size = sizeof o,
                              .pool_size = {w.size[0], w.size[1]},
                              .strides = {w.strides[0], w.strides[1]},
                              .padding = w.padding,
                              .pads = {w.pads[0], w.pads[1], w.pads[2], w.pads[3]}};
    made(m, tutti__graphdef_channels_back(m, m->node->op[0] == 'M'
                                                 ? tutti_nn_max_pool2d_with(x, &o)
                                                 : tutti_nn_average_pool2d_with(x, &o)));
}

static void read_pool3d(tutti_graphdef_import *m)
{
    window w;
    tutti_sym x = IN(0);
    if (m->status != TUTTI_OK || !read_window(m, 3, &w))
        return;
    x = tutti__graphdef_channels_last(m, x);
    tutti_pool3d_options o = {.struct_size = sizeof o, .padding = w.padding};
    memcpy(o.pool_size, w.size, sizeof o.pool_size);
    memcpy(o.strides, w.strides, sizeof o.strides);
    made(m, tutti__graphdef_channels_back(m, m->node->op[0] == 'M'
                                                 ? tutti_nn_max_pool3d_with(x, &o)
                                                 : tutti_nn_average_pool3d_with(x, &o)));
}

/* Pixels are points at their corners, or areas with centres. */
static void read_resize(tutti_graphdef_import *m)
{
    tutti_axes size;
    tutti_sym x = IN(0);
    bool nearest = strcmp(m->node->op, "ResizeNearestNeighbor") == 0;
    bool cubic = strcmp(m->node->op, "ResizeBicubic") == 0;
    bool corners = attr_int(m, "align_corners", 0), centres = attr_int(m, "half_pixel_centers", 0);
    if (m->status != TUTTI_OK || !tutti__graphdef_ints(m, 1, &size))
        return;
    if (size.count != 2) {
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "has %d sizes", size.count);
        return;
    }
    if (!nearest && tutti_dtype_is_int(tutti_sym_type(x).dtype))
        x = tutti_cast(x, TUTTI_F32);
    tutti_sym y = tutti_resize(x, .sizes = {size.values[0], size.values[1]},
                               .mode = cubic     ? "cubic"
                                       : nearest ? "nearest"
                                                 : "linear",
                               .coordinates = corners   ? "align_corners"
                                              : centres ? "half_pixel"
                                                        : "asymmetric",
                               .cubic_coefficient = centres ? -0.5 : -0.75,
                               .exclude_outside = cubic && centres,
                               .nearest_mode = corners || centres ? "round_prefer_ceil" : "floor");
    bool keeps = nearest || tutti_sym_type(x).dtype == TUTTI_F32;
    made(m, keeps ? y : tutti_cast(y, TUTTI_F32));
}

/* ---- blocks ---- */

typedef tutti_graphdef_dim dim;

static dim of_size(int64_t size)
{
    return (dim){.known = size};
}

/* Block sizes and the pads or crops; false after a failure. */
static bool read_blocks(tutti_graphdef_import *m, tutti_sym x, tutti_axes *blocks,
                        int64_t edges[][2])
{
    const tutti_tensor *pads = tutti__graphdef_value(m, 2);
    if (!pads || !tutti__graphdef_ints(m, 1, blocks))
        return false;
    int rank = tutti_sym_type(x).rank;
    bool fits = blocks->count > 0 && blocks->count < rank &&
                rank + blocks->count <= TUTTI_MAX_RANK &&
                tutti_tensor_count(pads) == 2 * blocks->count;
    for (int i = 0; fits && i < blocks->count; i++) {
        fits = blocks->values[i] > 0 && blocks->values[i] < 4096;
        edges[i][0] = tutti_tensor_get_int(pads, 2 * i);
        edges[i][1] = tutti_tensor_get_int(pads, 2 * i + 1);
    }
    if (!fits)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "has blocks of %d dimensions", blocks->count);
    return fits;
}

/* [n, h, w, c] → [n, h / b0, b0, w / b1, b1, c] → [b0, b1, n, h / b0, w / b1, c], where the first
 * three become the batch. */
static void read_space_to_batch(tutti_graphdef_import *m)
{
    tutti_axes blocks;
    int64_t pads[TUTTI_MAX_RANK][2], order[TUTTI_MAX_RANK], all = 1;
    tutti_pad_options o = {.struct_size = sizeof o};
    tutti_sym x = IN(0);
    dim split[TUTTI_MAX_RANK], whole[TUTTI_MAX_RANK];
    if (m->status != TUTTI_OK || !read_blocks(m, x, &blocks, pads))
        return;
    int count = blocks.count, rank = tutti_sym_type(x).rank;
    o.before.count = o.after.count = count + 1;
    for (int i = 0; i < count; i++) {
        o.before.values[i + 1] = pads[i][0];
        o.after.values[i + 1] = pads[i][1];
        all *= blocks.values[i];
    }
    x = tutti_pad_with(x, &o);
    split[0] = tutti__graphdef_dim(x, 0);
    whole[0] = tutti__graphdef_dim_times(split[0], all, 1);
    order[count] = 0;
    for (int i = 0; i < count; i++) {
        split[1 + 2 * i] = whole[i + 1] =
            tutti__graphdef_dim_times(tutti__graphdef_dim(x, i + 1), 1, blocks.values[i]);
        split[2 + 2 * i] = of_size(blocks.values[i]);
        order[i] = 2 + 2 * i;
        order[count + 1 + i] = 1 + 2 * i;
    }
    for (int i = count + 1; i < rank; i++) {
        split[i + count] = whole[i] = tutti__graphdef_dim(x, i);
        order[i + count] = i + count;
    }
    x = (tutti_transpose)(tutti__graphdef_in_dims(x, rank + count, split), rank + count, order);
    made(m, tutti__graphdef_in_dims(x, rank, whole));
}

/* [b0 * b1 * n, h, w, c] → [b0, b1, n, h, w, c] → [n, h, b0, w, b1, c], then cropped. */
static void read_batch_to_space(tutti_graphdef_import *m)
{
    tutti_axes blocks;
    int64_t crops[TUTTI_MAX_RANK][2], order[TUTTI_MAX_RANK], all = 1;
    tutti_sym x = IN(0);
    dim split[TUTTI_MAX_RANK], whole[TUTTI_MAX_RANK];
    if (m->status != TUTTI_OK || !read_blocks(m, x, &blocks, crops))
        return;
    int count = blocks.count, rank = tutti_sym_type(x).rank;
    for (int i = 0; i < count; i++)
        all *= blocks.values[i];
    split[count] = whole[0] = tutti__graphdef_dim_times(tutti__graphdef_dim(x, 0), 1, all);
    order[0] = count;
    for (int i = 0; i < count; i++) {
        split[i] = of_size(blocks.values[i]);
        split[count + 1 + i] = tutti__graphdef_dim(x, i + 1);
        whole[i + 1] = tutti__graphdef_dim_times(split[count + 1 + i], blocks.values[i], 1);
        order[1 + 2 * i] = count + 1 + i;
        order[2 + 2 * i] = i;
    }
    for (int i = count + 1; i < rank; i++) {
        split[i + count] = whole[i] = tutti__graphdef_dim(x, i);
        order[i + count] = i + count;
    }
    x = (tutti_transpose)(tutti__graphdef_in_dims(x, rank + count, split), rank + count, order);
    x = tutti__graphdef_in_dims(x, rank, whole);
    for (int i = 0; i < count; i++)
        if (crops[i][0] != 0 || crops[i][1] != 0)
            x = tutti_slice_axis(x, i + 1, crops[i][0], crops[i][1] ? -crops[i][1] : TUTTI_LAST);
    made(m, x);
}

/* DepthToSpace: [n, h, w, b * b * c] → [n, h, w, b, b, c] → [n, h, b, w, b, c]; SpaceToDepth back.
 */
static void read_depth(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0);
    int64_t b = attr_int(m, "block_size", 1);
    if (b < 1 || b > 4096)
        tutti__graphdef_fail(m, TUTTI_INVALID, "has blocks of %lld", (long long)b);
    if (m->status != TUTTI_OK)
        return;
    x = tutti__graphdef_channels_last(m, x);
    dim n = tutti__graphdef_dim(x, 0), h = tutti__graphdef_dim(x, 1), w = tutti__graphdef_dim(x, 2);
    dim c = tutti__graphdef_dim(x, 3);
    if (strcmp(m->node->op, "DepthToSpace") == 0) {
        dim split[] = {n, h, w, of_size(b), of_size(b), tutti__graphdef_dim_times(c, 1, b * b)};
        dim whole[] = {n, tutti__graphdef_dim_times(h, b, 1), tutti__graphdef_dim_times(w, b, 1),
                       split[5]};
        x = tutti_transpose(tutti__graphdef_in_dims(x, 6, split), 0, 1, 3, 2, 4, 5);
        x = tutti__graphdef_in_dims(x, 4, whole);
    } else {
        dim split[] = {n,          tutti__graphdef_dim_times(h, 1, b),
                       of_size(b), tutti__graphdef_dim_times(w, 1, b),
                       of_size(b), c};
        dim whole[] = {n, split[1], split[3], tutti__graphdef_dim_times(c, b * b, 1)};
        x = tutti_transpose(tutti__graphdef_in_dims(x, 6, split), 0, 1, 3, 2, 4, 5);
        x = tutti__graphdef_in_dims(x, 4, whole);
    }
    made(m, tutti__graphdef_channels_back(m, x));
}

const tutti_graphdef_entry tutti__graphdef_windows[] = {
    {"Conv2D", read_conv},
    {"DepthwiseConv2dNative", read_conv},
    {"Conv3D", read_conv3d},
    {"Conv2DBackpropInput", read_conv_transpose},
    {"Conv3DBackpropInputV2", read_conv3d_transpose},
    {"MaxPool", read_pool},
    {"AvgPool", read_pool},
    {"MaxPool3D", read_pool3d},
    {"AvgPool3D", read_pool3d},
    {"ResizeBilinear", read_resize},
    {"ResizeNearestNeighbor", read_resize},
    {"ResizeBicubic", read_resize},
    {"SpaceToBatchND", read_space_to_batch},
    {"BatchToSpaceND", read_batch_to_space},
    {"DepthToSpace", read_depth},
    {"SpaceToDepth", read_depth},
    {NULL, NULL},
};
