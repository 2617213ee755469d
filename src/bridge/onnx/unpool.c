/* unpool.c: values that go back to where they were taken from: MaxUnpool and Col2Im. */
#include "bridge/onnx.h"

#include <string.h>

#define AXES 6
#define PLACES ((int64_t)1 << 24) /* of a Col2Im, that are listed in a constant */

/* A list of an attribute with one number for each axis, `fallback` without it. */
static bool unpool_take(tutti_onnx_import *m, const char *name, int count, int64_t fallback,
                        int64_t least, int64_t *ret)
{
    const int64_t *list;
    int given = tutti__onnx_attr_ints(m, name, &list);
    for (int i = 0; i < count; i++)
        ret[i] = i < given ? list[i] : fallback;
    for (int i = 0; i < count; i++)
        if ((given != 0 && given != count) || ret[i] < least || ret[i] > INT32_MAX) {
            tutti__onnx_read_fail(m, TUTTI_CORRUPT, "%s are %d numbers, or out of range", name,
                                  given);
            return false;
        }
    return true;
}

/* [rows, 1] of zeros repeated to [rows, count]. */
static tutti_sym room(tutti_sym rows, int64_t count)
{
    tutti_sym one = tutti_zeros_like(tutti_slice_axis(rows, 1, 0, 1));
    return tutti_broadcast_to(one, -1, count);
}

/* ---- MaxUnpool ---- */

/* The size of what was pooled; its product, or -1 after a failure. */
static int64_t unpooled_size(tutti_onnx_import *m, tutti_type type, int axes, int64_t *ret)
{
    int64_t kernel[AXES], strides[AXES], pads[2 * AXES], total = 1, before = 1;
    if (!unpool_take(m, "kernel_shape", axes, 1, 1, kernel) ||
        !unpool_take(m, "strides", axes, 1, 1, strides) ||
        !unpool_take(m, "pads", 2 * axes, 0, 0, pads))
        return -1;
    for (int i = 0; i < axes; i++) {
        int64_t in = type.dims[i + 2];
        ret[i] = (in - 1) * strides[i] - pads[i] - pads[axes + i] + kernel[i];
        if (in < 1 || in > INT32_MAX || ret[i] < 1 || ret[i] > INT64_MAX / 4 / total ||
            in > INT64_MAX / 4 / before) {
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "needs images of a known size");
            return -1;
        }
        total *= ret[i];
        before *= in;
    }
    return total;
}

/* A larger output has zeros behind. */
static tutti_sym enlarged(tutti_onnx_import *m, tutti_sym y, int axes)
{
    tutti_onnx_elements shape;
    tutti_pad_options options = {.struct_size = sizeof options};
    tutti_type type = tutti_sym_type(y);
    if (!tutti__onnx_read_elements(m, 2, &shape) || shape.count != axes + 2) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "the shape of its output must be known");
        return TUTTI_NO_SYM;
    }
    options.before.count = options.after.count = axes + 2;
    for (int i = 0; i < axes; i++) {
        if (!shape.items[i + 2].known || shape.items[i + 2].value < type.dims[i + 2]) {
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "the shape of its output must be known");
            return TUTTI_NO_SYM;
        }
        options.after.values[i + 2] = shape.items[i + 2].value - type.dims[i + 2];
    }
    return tutti_pad_with(y, &options);
}

/* y is 0 but at the places, flat in all of it, that the indices name. */
static void read_max_unpool(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0), at = tutti__onnx_sym(m, 1);
    int64_t size[AXES], dims[TUTTI_MAX_RANK], pooled = 1;
    if (!x.node || !at.node)
        return;
    tutti_type type = tutti_sym_type(x);
    int axes = type.rank - 2;
    if (axes < 1 || axes > AXES) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "is over %d axes", axes);
        return;
    }
    int64_t total = unpooled_size(m, type, axes, size);
    if (total < 0)
        return;
    for (int i = 0; i < axes; i++)
        pooled *= type.dims[i + 2];
    tutti_sym rows = tutti_reshape(x, -1, pooled), flat = tutti_reshape(x, -1);
    tutti_sym zeros = tutti_reshape(room(rows, total), -1);
    tutti_sym y = tutti_scatter_elements(zeros, tutti_reshape(at, -1), flat, 0, "none");
    dims[0] = type.dims[1] < 0 ? type.dims[0] : -1;
    dims[1] = type.dims[1] < 0 ? -1 : type.dims[1];
    memcpy(dims + 2, size, (size_t)axes * sizeof *dims);
    if (dims[0] < 0 && dims[1] < 0 && type.dims[0] < 0 && type.dims[1] < 0) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "the number of channels must be known");
        return;
    }
    y = (tutti_reshape)(y, axes + 2, dims);
    if (y.node && tutti__onnx_has(m, 2))
        y = enlarged(m, y, axes);
    if (y.node)
        tutti__onnx_made(m, 0, y);
}

/* ---- Col2Im ---- */

typedef struct columns {
    int axes;
    int64_t image[AXES], block[AXES], steps[AXES]; /* steps: how many blocks fit along each axis */
    int64_t strides[AXES], dilations[AXES], pads[2 * AXES];
    int64_t pixels, taps, blocks;
} columns;

static bool read_columns(tutti_onnx_import *m, columns *c)
{
    tutti_axes image, block;
    if (!tutti__onnx_read_ints(m, 1, "the image's shape", &image) ||
        !tutti__onnx_read_ints(m, 2, "the block's shape", &block))
        return false;
    c->axes = image.count;
    c->pixels = c->taps = c->blocks = 1;
    if (c->axes < 1 || c->axes > AXES || block.count != c->axes ||
        !unpool_take(m, "strides", c->axes, 1, 1, c->strides) ||
        !unpool_take(m, "dilations", c->axes, 1, 1, c->dilations) ||
        !unpool_take(m, "pads", 2 * c->axes, 0, 0, c->pads)) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "the shapes of image and block do not fit");
        return false;
    }
    for (int i = 0; i < c->axes; i++) {
        int64_t size = image.values[i], taps = block.values[i];
        bool sane = size >= 1 && size <= INT32_MAX && taps >= 1 && taps <= INT32_MAX;
        int64_t room_for =
            sane ? size + c->pads[i] + c->pads[c->axes + i] - c->dilations[i] * (taps - 1) - 1 : -1;
        c->image[i] = size;
        c->block[i] = taps;
        c->steps[i] = room_for < 0 ? 0 : room_for / c->strides[i] + 1;
        if (room_for < 0 || c->pixels > PLACES / size || c->taps > PLACES / taps ||
            c->blocks > PLACES / c->steps[i]) {
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                                  "its image has no place for a block, or is "
                                  "too large");
            return false;
        }
        c->pixels *= size;
        c->taps *= taps;
        c->blocks *= c->steps[i];
    }
    return c->taps <= PLACES / c->blocks;
}

/* Where tap t of block b goes in the flat image; behind it when that is in the border. */
static int64_t pixel_of(const columns *c, int64_t t, int64_t b)
{
    int64_t at = 0, size = 1;
    for (int i = c->axes - 1; i >= 0; i--) {
        int64_t place = b % c->steps[i] * c->strides[i] + t % c->block[i] * c->dilations[i];
        place -= c->pads[i];
        if (place < 0 || place >= c->image[i])
            return c->pixels;
        at += place * size;
        size *= c->image[i];
        t /= c->block[i];
        b /= c->steps[i];
    }
    return at;
}

/* x [batch, channels taps, blocks]: each tap of each block is added to its pixel. */
static void read_col2im(tutti_onnx_import *m)
{
    columns c = {0};
    tutti_sym x = tutti__onnx_sym(m, 0);
    tutti_tensor *at;
    if (!x.node || !read_columns(m, &c))
        return;
    tutti_type type = tutti_sym_type(x);
    if (type.rank != 3 || type.dims[1] < 0 || type.dims[1] % c.taps != 0) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "needs a known number of channels");
        return;
    }
    if (tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){c.taps * c.blocks}, &at) != TUTTI_OK) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return;
    }
    for (int64_t i = 0; i < c.taps * c.blocks; i++)
        tutti_tensor_set_int(at, i, pixel_of(&c, i / c.blocks, i % c.blocks));
    tutti_sym places = tutti_constant(m->graph, at);
    tutti_tensor_release(at);
    tutti_sym rows = tutti_reshape(x, -1, c.taps * c.blocks);
    tutti_sym y = tutti_gather_grad(rows, places, room(rows, c.pixels + 1), 1);
    int64_t dims[TUTTI_MAX_RANK] = {-1, type.dims[1] / c.taps};
    memcpy(dims + 2, c.image, (size_t)c.axes * sizeof *dims);
    y = tutti_slice_axis(y, 1, 0, c.pixels);
    tutti__onnx_made(m, 0, (tutti_reshape)(y, c.axes + 2, dims));
}

const tutti_onnx_op tutti_onnx_max_unpool = {
    .type = "MaxUnpool",
    .read = read_max_unpool,
};

const tutti_onnx_op tutti_onnx_col2im = {
    .type = "Col2Im",
    .read = read_col2im,
};
