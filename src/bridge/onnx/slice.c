/* slice.c: taking parts, going backwards, adding borders. */
#include "bridge/onnx.h"

#include <math.h>
#include <string.h>

/* ---- writing ---- */

static const char *sliced(tutti_onnx_export *x, const char *name, int count, const int64_t *begin,
                          const int64_t *end, const int64_t *axes, const int64_t *step)
{
    const char *starts = tutti__onnx_ints(x, count, begin), *ends = tutti__onnx_ints(x, count, end);
    const char *along = tutti__onnx_ints(x, count, axes), *steps = tutti__onnx_ints(x, count, step);
    return ONNX(x, "Slice", name, starts, ends, along, steps);
}

/* A scalar has no axes to take from or to add to. */
static bool write_scalar(tutti_onnx_export *x)
{
    if (x->node->types[0].rank > 0)
        return false;
    tutti__onnx_out(x, 0, tutti__onnx_in(x, 0));
    return true;
}

/* Both sides count from the end and stop at the ends alike. */
static void write_slice(tutti_onnx_export *x)
{
    const int64_t *begins, *ends, *steps;
    int64_t begin[TUTTI_MAX_RANK], end[TUTTI_MAX_RANK], axes[TUTTI_MAX_RANK], step[TUTTI_MAX_RANK];
    int counts[3] = {NODE_INTS(x, "begin", &begins), NODE_INTS(x, "end", &ends),
                     NODE_INTS(x, "step", &steps)};
    int rank = x->node->types[0].rank;
    if (write_scalar(x))
        return;
    for (int i = 0; i < rank; i++) {
        axes[i] = i;
        step[i] = i < counts[2] ? steps[i] : 1;
        begin[i] = i < counts[0] ? begins[i] : step[i] > 0 ? 0 : INT64_MAX;
        end[i] = i < counts[1] ? ends[i] : step[i] > 0 ? INT64_MAX : INT64_MIN;
        begin[i] = begin[i] == TUTTI_FIRST && step[i] > 0 ? 0 : begin[i];
    }
    tutti__onnx_out(x, 0, sliced(x, tutti__onnx_in(x, 0), rank, begin, end, axes, step));
}

static void write_reverse(tutti_onnx_export *x)
{
    const int64_t *given;
    int64_t begin[TUTTI_MAX_RANK], end[TUTTI_MAX_RANK], axes[TUTTI_MAX_RANK], step[TUTTI_MAX_RANK];
    int count = NODE_INTS(x, "axes", &given), rank = x->node->types[0].rank;
    int all = count == 0 ? rank : count;
    if (write_scalar(x))
        return;
    for (int i = 0; i < all; i++) {
        axes[i] = count == 0 ? i : given[i];
        begin[i] = INT64_MAX;
        end[i] = INT64_MIN;
        step[i] = -1;
    }
    tutti__onnx_out(x, 0, sliced(x, tutti__onnx_in(x, 0), all, begin, end, axes, step));
}

/* The last `shift` elements, then the others. */
static void write_roll(tutti_onnx_export *x)
{
    int rank = x->node->types[0].rank;
    int64_t axis = NODE_INT(x, "axis"), shift = NODE_INT(x, "shift");
    axis += axis < 0 ? rank : 0;
    int64_t size = x->node->types[0].dims[axis];
    if (size < 0) {
        tutti__onnx_write_fail(x, TUTTI_UNSUPPORTED, "the size of its axis must be known");
        return;
    }
    shift = size > 0 ? (shift % size + size) % size : 0;
    const char *a = tutti__onnx_in(x, 0);
    int64_t cut = size - shift, zero = 0, last = INT64_MAX, one = 1;
    const char *tail = sliced(x, a, 1, &cut, &last, &axis, &one);
    const char *y = ONNX(x, "Concat", tail, sliced(x, a, 1, &zero, &cut, &axis, &one));
    tutti__onnx_set_int(x, "axis", axis);
    tutti__onnx_out(x, 0, y);
}

static void write_pad(tutti_onnx_export *x)
{
    const int64_t *paddings;
    int64_t pads[2 * TUTTI_MAX_RANK];
    int rank = x->node->types[0].rank;
    const char *mode = NODE_STR(x, "mode"), *value = "";
    if (write_scalar(x))
        return;
    NODE_INTS(x, "paddings", &paddings);
    for (int i = 0; i < rank; i++) {
        pads[i] = paddings[2 * i];
        pads[rank + i] = paddings[2 * i + 1];
    }
    if (strcmp(mode, "constant") == 0)
        value = tutti__onnx_number(x, x->node->types[0].dtype, NODE_FLOAT(x, "value"));
    const char *y =
        ONNX(x, "Pad", tutti__onnx_in(x, 0), tutti__onnx_ints(x, 2 * rank, pads), value);
    tutti__onnx_set_string(x, "mode", mode);
    tutti__onnx_out(x, 0, y);
}

/* ---- reading ---- */

/* Along one axis between places that are known only when it runs, by picking: the places are
 * brought between 0 and the size, as ONNX has it. */
static tutti_sym picked(tutti_onnx_import *m, tutti_sym x, int axis, tutti_onnx_element *ends,
                        int64_t step)
{
    tutti_sym size = tutti_size(x, axis), places[2];
    tutti_sym zero = tutti_scalar(m->graph, TUTTI_I64, 0);
    for (int i = 0; i < 2; i++) {
        tutti_sym at =
            ends[i].known ? tutti_squeeze(tutti_ints(m->graph, ends[i].value), 0) : ends[i].sym;
        at = tutti_where(tutti_less(at, zero), tutti_add(at, size), at);
        tutti_sym low = step > 0 || i == 0 ? zero : tutti_scalar(m->graph, TUTTI_I64, -1);
        tutti_sym high = step > 0 ? size : tutti_add(size, -1);
        places[i] = tutti_minimum(tutti_maximum(at, low), high);
    }
    tutti_sym indices =
        tutti_range_dynamic(places[0], places[1], tutti_scalar(m->graph, TUTTI_I64, (double)step));
    return tutti_gather(x, indices, axis);
}

typedef struct part {
    tutti_onnx_elements starts, ends, axes, steps;
} part;

/* Inputs from opset 10 on, attributes before. */
static bool read_list(tutti_onnx_import *m, int i, const char *name, tutti_onnx_elements *ret)
{
    const int64_t *values;
    *ret = (tutti_onnx_elements){.rank = 1, .dtype = TUTTI_I64};
    if (tutti__onnx_has(m, i)) {
        if (tutti__onnx_read_elements(m, i, ret))
            return true;
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "the number of its %s is not known", name);
        return false;
    }
    int count = tutti__onnx_attr_ints(m, name, &values);
    for (; ret->count < count && ret->count < ONNX_ELEMENTS; ret->count++)
        ret->items[ret->count] = (tutti_onnx_element){.known = true, .value = values[ret->count]};
    return true;
}

static tutti_sym cut_axis(tutti_onnx_import *m, tutti_sym x, const part *p, int i,
                          tutti_slice_options *options)
{
    int rank = tutti_sym_type(x).rank;
    int64_t axis = i < p->axes.count ? p->axes.items[i].value : i;
    tutti_onnx_element ends[2] = {p->starts.items[i], p->ends.items[i]};
    tutti_onnx_element step = {.known = true, .value = 1};
    step = i < p->steps.count ? p->steps.items[i] : step;
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || p->ends.count != p->starts.count || !step.known ||
        step.value == 0 || (p->axes.count > i && !p->axes.items[i].known)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                              "its lists do not fit %d axes, or axes and steps are not known",
                              rank);
        return x;
    }
    if (!ends[0].known || !ends[1].known)
        return picked(m, x, (int)axis, ends, step.value);
    options->begin.values[axis] = ends[0].value;
    options->end.values[axis] = ends[1].value;
    options->step.values[axis] = step.value;
    return x;
}

static void read_slice(tutti_onnx_import *m)
{
    part p;
    tutti_slice_options options = {.struct_size = sizeof options};
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (!x.node || !read_list(m, 1, "starts", &p.starts) || !read_list(m, 2, "ends", &p.ends) ||
        !read_list(m, 3, "axes", &p.axes) || !read_list(m, 4, "steps", &p.steps))
        return;
    int rank = tutti_sym_type(x).rank;
    options.begin.count = options.end.count = options.step.count = rank;
    for (int i = 0; i < rank; i++) {
        options.begin.values[i] = TUTTI_FIRST;
        options.end.values[i] = TUTTI_LAST;
        options.step.values[i] = 1;
    }
    for (int i = 0; m->status == TUTTI_OK && i < p.starts.count; i++)
        x = cut_axis(m, x, &p, i, &options);
    if (m->status == TUTTI_OK)
        tutti__onnx_made(m, 0, tutti_slice_with(x, &options));
}

/* Pads of the named axes, or of all. */
static bool spread_pads(tutti_onnx_import *m, int rank, const tutti_tensor *pads,
                        tutti_pad_options *options)
{
    tutti_axes axes = {.count = rank};
    for (int i = 0; i < rank; i++)
        axes.values[i] = i;
    if (tutti__onnx_has(m, 3) && !tutti__onnx_read_ints(m, 3, "axes", &axes))
        return false;
    options->before.count = options->after.count = rank;
    for (int i = 0; i < axes.count; i++) {
        int64_t axis = axes.values[i] + (axes.values[i] < 0 ? rank : 0);
        if (axis < 0 || axis >= rank || tutti_tensor_count(pads) != 2 * axes.count) {
            tutti__onnx_read_fail(m, TUTTI_CORRUPT, "its pads do not fit %d axes", rank);
            return false;
        }
        options->before.values[axis] = tutti_tensor_get_int(pads, i);
        options->after.values[axis] = tutti_tensor_get_int(pads, axes.count + i);
    }
    return true;
}

/* "wrap" goes round: picks (i - before) mod size along each axis. */
static tutti_sym wrapped(tutti_onnx_import *m, tutti_sym x, const tutti_pad_options *o)
{
    tutti_type type = tutti_sym_type(x);
    for (int axis = 0; axis < type.rank; axis++) {
        int64_t before = o->before.values[axis], after = o->after.values[axis];
        int64_t size = type.dims[axis], whole = size + before + after;
        tutti_tensor *list;
        if (before == 0 && after == 0)
            continue;
        if (size < 1 || whole < 0 ||
            tutti_tensor_create(TUTTI_I64, 1, (int64_t[]){whole}, &list) != TUTTI_OK) {
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "mode wrap needs known dimensions");
            return x;
        }
        for (int64_t i = 0; i < whole; i++)
            tutti_tensor_set_int(list, i, ((i - before) % size + size) % size);
        x = tutti_gather(x, tutti_constant(m->graph, list), axis);
        tutti_tensor_release(list);
    }
    return x;
}

/* Negative pads take away. */
static tutti_sym cut_off(tutti_sym x, tutti_pad_options *o)
{
    for (int axis = 0; axis < o->before.count; axis++) {
        int64_t *before = &o->before.values[axis], *after = &o->after.values[axis];
        if (*before < 0 || *after < 0)
            x = tutti_slice_axis(x, axis, *before < 0 ? -*before : 0,
                                 *after < 0 ? *after : TUTTI_LAST);
        *before = *before < 0 ? 0 : *before;
        *after = *after < 0 ? 0 : *after;
    }
    return x;
}

/* Integers are padded with the value itself, which a double may not hold: pads are where ones are
 * padded with 0. */
static tutti_sym padded_with(tutti_sym x, tutti_pad_options o, tutti_sym value)
{
    o.value = 0;
    tutti_sym own = tutti_pad_with(tutti_ones_like(x), &o);
    value = tutti_sym_type(value).rank > 0 ? tutti_reshape(value) : value;
    return tutti_where(tutti_equal(own, 0), value, tutti_pad_with(x, &o));
}

/* Pads and value are inputs from opset 11 on, attributes before. */
static void read_pad(tutti_onnx_import *m)
{
    tutti_pad_options options = {.struct_size = sizeof options};
    tutti_sym x = tutti__onnx_sym(m, 0);
    const int64_t *listed;
    int count = tutti__onnx_attr_ints(m, "pads", &listed);
    tutti_tensor *own = NULL;
    if (count > 0 && tutti_tensor_from(TUTTI_I64, 1, (int64_t[]){count}, listed, &own) != TUTTI_OK)
        return;
    const tutti_tensor *pads = own ? own : tutti__onnx_read_constant(m, 1, "the pads");
    options.mode = tutti__onnx_attr_string(m, "mode", "constant");
    options.value = tutti__onnx_attr_float(m, "value", 0);
    if (x.node && pads && spread_pads(m, tutti_sym_type(x).rank, pads, &options) &&
        tutti__onnx_read_number(m, 2, options.value, &options.value)) {
        x = cut_off(x, &options);
        bool wraps = strcmp(options.mode, "wrap") == 0;
        bool large = tutti_sym_type(x).dtype == TUTTI_I64 && fabs(options.value) >= 0x1p53 &&
                     strcmp(options.mode, "constant") == 0 && tutti__onnx_has(m, 2);
        tutti__onnx_made(m, 0,
                         wraps   ? wrapped(m, x, &options)
                         : large ? padded_with(x, options, tutti__onnx_sym(m, 2))
                                 : tutti_pad_with(x, &options));
    }
    tutti_tensor_release(own);
}

const tutti_onnx_op tutti_onnx_slice = {
    .op = "slice",
    .type = "Slice",
    .write = write_slice,
    .read = read_slice,
};

const tutti_onnx_op tutti_onnx_reverse = {
    .op = "reverse",
    .write = write_reverse,
};

const tutti_onnx_op tutti_onnx_roll = {
    .op = "roll",
    .write = write_roll,
};

const tutti_onnx_op tutti_onnx_pad = {
    .op = "pad",
    .type = "Pad",
    .write = write_pad,
    .read = read_pad,
};
