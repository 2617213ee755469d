/* resize.c: larger and smaller images. ONNX numbers the axes of channels first, and before opset 18
 * gives a number for every axis. */
#include <string.h>

#include "bridge/onnx.h"

/* ---- writing ---- */

/* The axes that our node resizes; true when they are all between batch and channels, so that the
 * node may be written channels first. */
static bool written_axes(const tutti_onnx_export *x, tutti_axes *ret)
{
    int rank = tutti__onnx_type_in(x, 0)->rank;
    const int64_t *given;
    int count = NODE_INTS(x, "axes", &given);
    bool between = rank > 2 && (count == 0 || count == rank - 2);
    *ret = (tutti_axes){.count = count};
    for (int i = 0; i < count; i++) {
        ret->values[i] = given[i] < 0 ? given[i] + rank : given[i];
        between = between && ret->values[i] == i + 1;
    }
    for (int i = 1; i < rank - 1 && count == 0; i++)
        ret->values[ret->count++] = i;
    for (int i = 0; i < ret->count && between; i++)
        ret->values[i]++;
    return between;
}

static const char *constant(tutti_onnx_export *x, tutti_dtype dtype, int count,
                            const double *values)
{
    tutti_tensor *tensor;
    int64_t dims[1] = {count};
    if (tutti_tensor_create(dtype, 1, dims, &tensor) != TUTTI_OK) {
        tutti__onnx_write_fail(x, TUTTI_NO_MEMORY, "no memory for the file");
        return "";
    }
    for (int i = 0; i < count; i++)
        tutti_tensor_set(tensor, i, values[i]);
    return tutti__onnx_constant(x, tensor);
}

/* One number for every axis, `otherwise` where none is meant. */
static const char *for_all(tutti_onnx_export *x, const tutti_axes *axes, const double *values,
                           int parts, double otherwise)
{
    double all[2 * TUTTI_MAX_RANK];
    int rank = tutti__onnx_type_in(x, 0)->rank;
    for (int part = 0; part < parts; part++) {
        for (int i = 0; i < rank; i++)
            all[part * rank + i] = part == 0 ? otherwise : 1;
        for (int i = 0; i < axes->count; i++)
            all[part * rank + axes->values[i]] = values[part * axes->count + i];
    }
    return constant(x, TUTTI_F32, parts * rank, all);
}

/* Channels first, sizes stand beside what is kept of the image's shape: runtimes turn images under
 * a Resize, and some forget its axes then. */
static bool keeps_shape(const tutti_onnx_export *x, bool first)
{
    return first && x->onnx->opset >= 18 && strcmp(NODE_STR(x, "aspect"), "stretch") == 0 &&
           tutti_attr_find(x->node->attrs, x->node->attr_count, "roi")->count == 0;
}

/* Sizes of the output, for the axes alone where the opset can say so. */
static const char *write_sizes(tutti_onnx_export *x, const tutti_axes *axes, bool first)
{
    const int64_t *sizes, *dims = x->node->types[0].dims;
    int rank = x->node->types[0].rank;
    int64_t all[TUTTI_MAX_RANK];
    NODE_INTS(x, "sizes", &sizes);
    if (keeps_shape(x, first)) {
        const char *shape = ONNX(x, "Shape", tutti__onnx_in_first(x, 0));
        const char *from = tutti__onnx_ints(x, 1, (int64_t[]){0});
        const char *kept = ONNX(x, "Slice", shape, from, tutti__onnx_ints(x, 1, (int64_t[]){2}));
        const char *whole = ONNX(x, "Concat", kept, tutti__onnx_ints(x, axes->count, sizes));
        tutti__onnx_set_int(x, "axis", 0);
        return whole;
    }
    if (x->onnx->opset >= 18)
        return tutti__onnx_ints(x, axes->count, sizes);
    for (int i = 0; i < rank; i++) {
        int from = !first || i == 0 ? i : i == 1 ? rank - 1 : i - 1;
        all[i] = dims[from];
        if (all[i] < 0)
            tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED,
                                   "sizes of a batch of unknown size need opset 18");
    }
    return tutti__onnx_ints(x, rank, all);
}

static void set_attributes(tutti_onnx_export *x, const tutti_axes *axes, bool sized, bool first)
{
    bool late = x->onnx->opset >= 18;
    bool odd = NODE_INT(x, "antialias") != 0 || strcmp(NODE_STR(x, "aspect"), "stretch") != 0;
    tutti__onnx_set_string(x, "mode", NODE_STR(x, "mode"));
    tutti__onnx_set_string(x, "coordinate_transformation_mode", NODE_STR(x, "coordinates"));
    tutti__onnx_set_string(x, "nearest_mode", NODE_STR(x, "nearest_mode"));
    tutti__onnx_set_float(x, "cubic_coeff_a", NODE_FLOAT(x, "cubic_coefficient"));
    tutti__onnx_set_int(x, "exclude_outside", NODE_INT(x, "exclude_outside"));
    tutti__onnx_set_float(x, "extrapolation_value", NODE_FLOAT(x, "extrapolation_value"));
    if (late && NODE_INT(x, "antialias"))
        tutti__onnx_set_int(x, "antialias", 1);
    if (late && sized && !keeps_shape(x, first)) {
        tutti__onnx_set_string(x, "keep_aspect_ratio_policy", NODE_STR(x, "aspect"));
        tutti__onnx_set_ints(x, "axes", axes->count, axes->values);
    }
    if ((!late && odd) ||
        (x->onnx->opset < 19 && strcmp(NODE_STR(x, "coordinates"), "half_pixel_symmetric") == 0))
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED, "needs opset 19");
}

static void write_resize(tutti_onnx_export *x)
{
    tutti_axes axes;
    bool first = written_axes(x, &axes);
    const tutti_node *node = x->node;
    const tutti_attr *scales = tutti_attr_find(node->attrs, node->attr_count, "scales");
    const tutti_attr *roi = tutti_attr_find(node->attrs, node->attr_count, "roi");
    const char *image = tutti__onnx_in_as(x, 0, first), *y;
    bool sized = tutti_attr_find(node->attrs, node->attr_count, "sizes")->count > 0;
    const char *part = "";
    if (roi->count > 0 && sized && x->onnx->opset >= 18)
        part = constant(x, TUTTI_F32, roi->count, roi->value.floats);
    else if (roi->count > 0)
        part = for_all(x, &axes, roi->value.floats, 2, 0);
    if (sized && scales->count > 0)
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED, "ONNX knows sizes or scales, not both");
    if (sized)
        y = ONNX(x, "Resize", image, part, "", write_sizes(x, &axes, first));
    else
        y = ONNX(x, "Resize", image, part, for_all(x, &axes, scales->value.floats, 1, 1));
    set_attributes(x, &axes, sized, first);
    tutti__onnx_out_as(x, 0, y, first);
}

/* ---- reading ---- */

/* What stands for each axis of the file, whether it is meant or not. */
typedef struct resize_numbers {
    int rank;
    double sizes[TUTTI_MAX_RANK], scales[TUTTI_MAX_RANK], starts[TUTTI_MAX_RANK],
        ends[TUTTI_MAX_RANK];
    bool sized, changed[TUTTI_MAX_RANK];
} resize_numbers;

/* Elements of a constant input; 0 where it is not there. */
static int read_list(tutti_onnx_import *m, int i, const char *what, int most, double *ret)
{
    tutti_tensor *value = tutti__onnx_has(m, i) ? tutti__onnx_read_constant(m, i, what) : NULL;
    int64_t count = value == NULL ? 0 : tutti_tensor_count(value);
    if (count > most) {
        tutti__onnx_read_fail(m, TUTTI_INVALID, "%s has %lld numbers", what, (long long)count);
        return 0;
    }
    for (int64_t k = 0; k < count; k++)
        ret[k] = tutti_tensor_get(value, k);
    return (int)count;
}

static bool read_numbers(tutti_onnx_import *m, tutti_type x, resize_numbers *ret)
{
    bool old = m->node->inputs.count == 2; /* opset 10: x, scales */
    double sizes[TUTTI_MAX_RANK] = {0}, scales[TUTTI_MAX_RANK], roi[2 * TUTTI_MAX_RANK];
    int scale_count = read_list(m, old ? 1 : 2, "scales", x.rank, scales);
    int size_count = old ? 0 : read_list(m, 3, "sizes", x.rank, sizes);
    int roi_count = old ? 0 : read_list(m, 1, "roi", 2 * x.rank, roi);
    const int64_t *axes;
    int count = tutti__onnx_attr_ints(m, "axes", &axes), given = size_count + scale_count;
    int expected = count > 0 ? count : x.rank;
    if (m->status != TUTTI_OK)
        return false;
    if (given != expected || (size_count > 0 && scale_count > 0) ||
        (roi_count > 0 && roi_count != 2 * expected)) {
        tutti__onnx_read_fail(m, TUTTI_INVALID, "%d sizes and %d scales for %d axes", size_count,
                              scale_count, expected);
        return false;
    }
    *ret = (resize_numbers){.rank = x.rank, .sized = size_count > 0};
    for (int i = 0; i < expected; i++) {
        int64_t axis = count == 0 ? i : axes[i] < 0 ? axes[i] + x.rank : axes[i];
        if (axis < 0 || axis >= x.rank)
            continue;
        ret->scales[axis] = scale_count > 0 ? scales[i] : 0;
        ret->sizes[axis] = size_count > 0 ? sizes[i] : 0;
        ret->starts[axis] = roi_count > 0 ? roi[i] : 0;
        ret->ends[axis] = roi_count > 0 ? roi[expected + i] : 1;
        bool same = scale_count > 0    ? scales[i] == 1
                    : x.dims[axis] < 0 ? axis < 2 && x.rank > 2
                                       : (double)x.dims[axis] == sizes[i];
        ret->changed[axis] = count > 0 || !same || (axis > 1 && x.rank > 2);
    }
    return true;
}

/* Channels last all between batch and channels is resized; else the axes as they are. */
static tutti_resize_options options_of(const resize_numbers *n, bool last)
{
    tutti_resize_options o = {.struct_size = sizeof o};
    int count = 0;
    for (int axis = 0; axis < n->rank; axis++)
        count += n->changed[axis];
    for (int axis = 0, i = 0; axis < n->rank; axis++) {
        if (!n->changed[axis])
            continue;
        o.axes.values[o.axes.count++] = last ? axis - 1 : axis;
        o.sizes[i] = (int64_t)n->sizes[axis];
        o.scales[i] = n->scales[axis];
        o.roi[i] = n->starts[axis];
        o.roi[count + i++] = n->ends[axis];
    }
    return o;
}

static void read_resize(tutti_onnx_import *m)
{
    resize_numbers n;
    tutti_sym plain = tutti__onnx_sym(m, 0);
    if (!tutti_sym_ok(plain) || !read_numbers(m, tutti_sym_type(plain), &n))
        return;
    bool last = n.rank > 2 && !n.changed[0] && !n.changed[1], any = false;
    for (int axis = 0; axis < n.rank; axis++)
        any = any || n.changed[axis];
    tutti_resize_options o = options_of(&n, last);
    bool old = m->node->inputs.count == 2;
    o.mode = tutti__onnx_attr_string(m, "mode", "nearest");
    o.coordinates = tutti__onnx_attr_string(m, "coordinate_transformation_mode",
                                            old ? "asymmetric" : "half_pixel");
    o.nearest_mode =
        tutti__onnx_attr_string(m, "nearest_mode", old ? "floor" : "round_prefer_floor");
    o.aspect = tutti__onnx_attr_string(m, "keep_aspect_ratio_policy", "stretch");
    o.cubic_coefficient = tutti__onnx_attr_float(m, "cubic_coeff_a", -0.75);
    o.exclude_outside = tutti__onnx_attr_int(m, "exclude_outside", 0) != 0;
    o.antialias = tutti__onnx_attr_int(m, "antialias", 0) != 0;
    o.extrapolation_value = tutti__onnx_attr_float(m, "extrapolation_value", 0);
    tutti_sym x = tutti__onnx_sym_as(m, 0, last);
    tutti__onnx_made_as(m, 0, any ? tutti_resize_with(x, &o) : x, last);
}

/* What Resize was called before opset 10. */
const tutti_onnx_op tutti_onnx_upsample = {
    .type = "Upsample",
    .read = read_resize,
};

const tutti_onnx_op tutti_onnx_resize = {
    .op = "resize",
    .type = "Resize",
    .write = write_resize,
    .read = read_resize,
};
