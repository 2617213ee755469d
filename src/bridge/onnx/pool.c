/* pool.c: pooling, by windows and over everything. */
#include "bridge/onnx.h"
#include "bridge/onnx/window.h"
#include "ops/build.h"

#include <math.h>
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

/* ---- reading ---- */

typedef struct pool {
    tutti_onnx_window w;
    int64_t size[3];
    int64_t more[3];      /* behind, that a last partial window needs; it is not in the mean */
    bool largest, counts; /* the maximum; padding counts in the mean */
} pool;

/* With ceil_mode a last window that begins inside x or before it counts, though it ends outside. */
static bool settle_ceil(tutti_onnx_import *m, tutti_sym x, pool *p)
{
    tutti_type type = tutti_sym_type(x);
    if (!tutti__onnx_attr_int(m, "ceil_mode", 0))
        return true;
    for (int i = 0; i < p->w.axes; i++) {
        int64_t in = type.dims[i + 1], step = p->w.strides[i];
        int64_t reach = (p->size[i] - 1) * p->w.dilations[i] + 1;
        if (in < 0 || strcmp(p->w.padding, "same") == 0) {
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "ceil_mode needs known dimensions");
            return false;
        }
        int64_t whole = in + p->w.pads[2 * i] + p->w.pads[2 * i + 1];
        int64_t out = whole < reach ? 1 : (whole - reach + step - 1) / step + 1;
        if ((out - 1) * step >= in + p->w.pads[2 * i])
            out--;
        int64_t more = (out - 1) * step + reach - whole;
        p->more[i] = more > 0 ? more : 0;
    }
    return true;
}

/* x with a border of `value` all round. */
static tutti_sym bordered(tutti_sym x, const pool *p, bool own, bool more, double value)
{
    tutti_pad_options options = {.struct_size = sizeof options, .value = value};
    options.before.count = options.after.count = p->w.axes + 1;
    for (int i = 0; i < p->w.axes; i++) {
        options.before.values[i + 1] = own ? p->w.pads[2 * i] : 0;
        options.after.values[i + 1] = (own ? p->w.pads[2 * i + 1] : 0) + (more ? p->more[i] : 0);
    }
    return tutti_pad_with(x, &options);
}

static int64_t places_of(const pool *p)
{
    int64_t places = 1;
    for (int i = 0; i < p->w.axes; i++)
        places *= p->size[i];
    return places;
}

/* What stands at place `at` of every window of the bordered x. */
static tutti_sym part_of(tutti_sym x, const pool *p, int64_t at)
{
    tutti_type type = tutti_sym_type(x);
    tutti_slice_options cut = {.struct_size = sizeof cut};
    int64_t rest = at;
    cut.begin.count = cut.end.count = cut.step.count = type.rank;
    for (int i = 0; i < type.rank; i++) {
        cut.begin.values[i] = TUTTI_FIRST;
        cut.end.values[i] = TUTTI_LAST;
        cut.step.values[i] = 1;
    }
    for (int i = p->w.axes - 1; i >= 0; i--) {
        int64_t place = rest % p->size[i] * p->w.dilations[i];
        int64_t reach = (p->size[i] - 1) * p->w.dilations[i] + 1;
        int64_t out = (type.dims[i + 1] - reach) / p->w.strides[i] + 1;
        rest /= p->size[i];
        cut.begin.values[i + 1] = place;
        cut.end.values[i + 1] = place + (out - 1) * p->w.strides[i] + 1;
        cut.step.values[i + 1] = p->w.strides[i];
    }
    return tutti_slice_with(x, &cut);
}

/* Windows that our pooling has not (dilated ones): one strided part of the bordered x for each of
 * their places, folded by addition or maximum. */
static tutti_sym folded(tutti_sym x, const pool *p)
{
    tutti_sym y = part_of(x, p, 0);
    for (int64_t at = 1; at < places_of(p); at++) {
        tutti_sym part = part_of(x, p, at);
        y = p->largest ? tutti_maximum(y, part) : tutti_add(y, part);
    }
    return y;
}

static bool may_part(tutti_onnx_import *m, tutti_sym x, const pool *p)
{
    tutti_type type = tutti_sym_type(x);
    int64_t places = 1;
    for (int i = 0; i < p->w.axes; i++) {
        places *= p->size[i];
        if (type.dims[i + 1] < 0 || places > 512 || strcmp(p->w.padding, "same") == 0) {
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                                  "dilated windows and indices need known dimensions and at most "
                                  "512 places");
            return false;
        }
    }
    return true;
}

static tutti_sym pooled_by_parts(tutti_onnx_import *m, tutti_sym x, const pool *p)
{
    if (!may_part(m, x, p))
        return TUTTI_NO_SYM;
    if (p->largest)
        return folded(bordered(x, p, true, true, -INFINITY), p);
    tutti_sym sum = folded(bordered(x, p, true, true, 0), p), ones = tutti_ones_like(x);
    ones = bordered(ones, p, true, false, p->counts ? 1 : 0);
    pool rest = *p;
    memset(rest.w.pads, 0, sizeof rest.w.pads);
    return tutti_div(sum, folded(bordered(ones, &rest, false, true, 0), p));
}

static tutti_sym pooled(tutti_sym x, const pool *p)
{
    const int64_t *s = p->w.strides, *k = p->size;
    int64_t e[6];
    bool same = strcmp(p->w.padding, "same") == 0;
    if (p->counts && !same)
        x = bordered(x, p, true, false, 0);
    for (int i = 0; i < 6; i++)
        e[i] = (p->counts ? 0 : p->w.pads[i]) + (i % 2 ? p->more[i / 2] : 0);
    if (p->w.axes == 1) {
        tutti_pool1d_options one = {sizeof one, k[0], s[0], p->w.padding, {e[0], e[1]}};
        return p->largest ? tutti_nn_max_pool1d_with(x, &one)
                          : tutti_nn_average_pool1d_with(x, &one);
    }
    if (p->w.axes == 2) {
        tutti_pool2d_options two = {
            sizeof two, {k[0], k[1]}, {s[0], s[1]}, p->w.padding, {e[0], e[1], e[2], e[3]}};
        return p->largest ? tutti_nn_max_pool2d_with(x, &two)
                          : tutti_nn_average_pool2d_with(x, &two);
    }
    tutti_pool3d_options three = {sizeof three,
                                  {k[0], k[1], k[2]},
                                  {s[0], s[1], s[2]},
                                  p->w.padding,
                                  {e[0], e[1], e[2], e[3], e[4], e[5]}};
    return p->largest ? tutti_nn_max_pool3d_with(x, &three)
                      : tutti_nn_average_pool3d_with(x, &three);
}

static bool read_settings(tutti_onnx_import *m, tutti_sym x, pool *p)
{
    const int64_t *size;
    int axes = tutti__onnx_attr_ints(m, "kernel_shape", &size);
    if (axes < 1 || axes > 3) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "is over %d axes; 1 to 3 are supported", axes);
        return false;
    }
    for (int i = 0; i < axes; i++) {
        p->size[i] = size[i];
        if (size[i] < 1 || size[i] > INT32_MAX) {
            tutti__onnx_read_fail(m, TUTTI_CORRUPT, "its window is %lld wide", (long long)size[i]);
            return false;
        }
    }
    return tutti__onnx_read_window(m, x, axes, p->size, &p->w) && settle_ceil(m, x, p);
}

/* Whether pooling of ours has such windows: borders are smaller than the window. */
static bool is_plain(const pool *p)
{
    for (int i = 0; i < p->w.axes; i++)
        if (p->w.dilations[i] != 1 || p->w.pads[2 * i] >= p->size[i] ||
            p->w.pads[2 * i + 1] + p->more[i] >= p->size[i])
            return false;
    return true;
}

/* Places of x's images as i64 [1, height, width, 1], rows after rows or columns after columns. */
static tutti_sym places_in(tutti_graph *graph, const tutti_type *type, const pool *p, bool columns)
{
    int64_t stride = 1;
    tutti_sym y = TUTTI_NO_SYM;
    for (int k = 0; k < p->w.axes; k++) {
        int axis = columns ? k : p->w.axes - 1 - k;
        int64_t shape[5] = {1, 1, 1, 1, 1};
        tutti_sym line = tutti_range(graph, 0, (double)type->dims[axis + 1], 1, TUTTI_I64);
        shape[axis + 1] = type->dims[axis + 1];
        line = (tutti_reshape)(tutti_mul(line, (double)stride), p->w.axes + 2, shape);
        y = y.node ? tutti_add(y, line) : line;
        stride *= type->dims[axis + 1];
    }
    return y;
}

/* 0, size, 2 size, … along an axis of x, in the shape of x with 1 for the others. */
static tutti_sym starts_of(tutti_sym x, int axis, double size)
{
    tutti_axes rest = {0};
    for (int i = 0; i < tutti_sym_type(x).rank; i++)
        if (i != axis)
            rest.values[rest.count++] = i;
    tutti_sym line = tutti_max(x, .axes = rest, .keepdims = true);
    tutti_sym ones = tutti_cast(tutti_ones_like(line), TUTTI_I64);
    return tutti_mul(tutti_cumsum(ones, axis, .exclusive = true), size);
}

/* The maximum of each window and where it stands in x, channels first and flat: the first of equal
 * ones; what stands in a border counts for nothing. */
static void read_with_indices(tutti_onnx_import *m, tutti_sym x, const pool *p)
{
    tutti_type type = tutti_sym_type(x);
    bool columns = tutti__onnx_attr_int(m, "storage_order", 0) != 0;
    int64_t image = 1;
    if (!may_part(m, x, p) || type.dims[type.rank - 1] < 0) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "indices need a known number of channels");
        return;
    }
    for (int i = 0; i < p->w.axes; i++)
        image *= type.dims[i + 1];
    tutti_sym wide = bordered(x, p, true, true, tutti_dtype_is_float(type.dtype) ? -INFINITY : 0);
    tutti_sym place = bordered(places_in(m->graph, &type, p, columns), p, true, true, -1);
    tutti_sym y = part_of(wide, p, 0),
              where = tutti_add(part_of(place, p, 0), tutti_cast(tutti_zeros_like(y), TUTTI_I64));
    for (int64_t at = 1; at < places_of(p); at++) {
        tutti_sym part = part_of(wide, p, at), here = part_of(place, p, at);
        tutti_sym none = tutti__scalar_like(here, 0);
        tutti_sym better =
            tutti_logical_and(tutti_greater_equal(here, none),
                              tutti_logical_or(tutti_greater(part, y), tutti_less(where, none)));
        y = tutti_where(better, part, y);
        where = tutti_where(better, here, where);
    }
    double channels = (double)type.dims[type.rank - 1];
    where = tutti_add(where, starts_of(x, type.rank - 1, (double)image));
    where = tutti_add(where, starts_of(x, 0, (double)image * channels));
    tutti__onnx_made_as(m, 0, y, true);
    tutti__onnx_made_as(m, 1, where, true);
}

static void read_pool(tutti_onnx_import *m)
{
    pool p = {.largest = strcmp(m->rule->type, "MaxPool") == 0};
    tutti_sym x = tutti__onnx_sym_last(m, 0);
    if (!read_settings(m, x, &p))
        return;
    p.counts = !p.largest && tutti__onnx_attr_int(m, "count_include_pad", 0) != 0;
    tutti_dtype dtype = tutti_sym_type(x).dtype;
    if (p.largest && tutti__onnx_names(m, 1)) {
        read_with_indices(m, x, &p);
        return;
    }
    bool whole = tutti_dtype_is_int(dtype);
    x = whole ? tutti_cast(x, TUTTI_F32) : x;
    tutti_sym y = is_plain(&p) ? pooled(x, &p) : pooled_by_parts(m, x, &p);
    tutti__onnx_made_as(m, 0, whole ? tutti_cast(y, dtype) : y, true);
}

/* (sum of |x|^p)^(1/p) of each window; borders are 0. */
static void read_lp_pool(tutti_onnx_import *m)
{
    pool p = {0};
    tutti_sym x = tutti__onnx_sym_last(m, 0);
    double power = (double)tutti__onnx_attr_int(m, "p", 2);
    if (!read_settings(m, x, &p))
        return;
    tutti_sym a = power == 2 ? tutti_square(x) : tutti_pow(tutti_abs(x), power);
    double places = (double)places_of(&p);
    a = bordered(a, &p, true, true, 0);
    memset(p.w.pads, 0, sizeof p.w.pads);
    memset(p.more, 0, sizeof p.more);
    tutti_sym sum = is_plain(&p) ? tutti_mul(pooled(a, &p), places) : folded(a, &p);
    tutti__onnx_made_as(m, 0, power == 2 ? tutti_sqrt(sum) : tutti_pow(sum, 1 / power), true);
}

static void read_global_lp(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym_last(m, 0);
    double power = (double)tutti__onnx_attr_int(m, "p", 2);
    tutti_axes axes = {0};
    if (!x.node)
        return;
    for (int i = 1; i < tutti_sym_type(x).rank - 1; i++)
        axes.values[axes.count++] = i;
    tutti_sym sum = tutti_sum(tutti_pow(tutti_abs(x), power), .axes = axes, .keepdims = true);
    tutti__onnx_made_as(m, 0, tutti_pow(sum, 1 / power), true);
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
        y = tutti_max(x, .axes = axes, .keepdims = true);
    else
        y = tutti_mean(x, .axes = axes, .keepdims = true);
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

const tutti_onnx_op tutti_onnx_lp_pool = {
    .type = "LpPool",
    .read = read_lp_pool,
};

const tutti_onnx_op tutti_onnx_global_lp_pool = {
    .type = "GlobalLpPool",
    .read = read_global_lp,
};
