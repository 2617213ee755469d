/* slice.c: taking parts, going backwards, adding borders. */
#include "bridge/onnx.h"

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

static void read_slice(tutti_onnx_import *m)
{
    tutti_axes begin, end, axes = {0}, step = {0};
    tutti_slice_options options = {.struct_size = sizeof options};
    tutti_sym x = tutti__onnx_sym(m, 0);
    if (!x.node || !tutti__onnx_read_ints(m, 1, "starts", &begin) ||
        !tutti__onnx_read_ints(m, 2, "ends", &end) ||
        (tutti__onnx_has(m, 3) && !tutti__onnx_read_ints(m, 3, "axes", &axes)) ||
        (tutti__onnx_has(m, 4) && !tutti__onnx_read_ints(m, 4, "steps", &step)))
        return;
    int rank = tutti_sym_type(x).rank;
    options.begin.count = options.end.count = options.step.count = rank;
    for (int i = 0; i < rank; i++) {
        options.begin.values[i] = TUTTI_FIRST;
        options.end.values[i] = TUTTI_LAST;
        options.step.values[i] = 1;
    }
    for (int i = 0; i < begin.count; i++) {
        int64_t axis = tutti__onnx_has(m, 3) && i < axes.count ? axes.values[i] : i;
        axis += axis < 0 ? rank : 0;
        if (axis < 0 || axis >= rank || end.count != begin.count) {
            tutti__onnx_read_fail(m, TUTTI_CORRUPT, "its lists do not fit %d axes", rank);
            return;
        }
        options.begin.values[axis] = begin.values[i];
        options.end.values[axis] = end.values[i];
        options.step.values[axis] = i < step.count ? step.values[i] : 1;
    }
    tutti__onnx_made(m, 0, (tutti_slice)(x, &options));
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

static void read_pad(tutti_onnx_import *m)
{
    tutti_pad_options options = {.struct_size = sizeof options};
    tutti_sym x = tutti__onnx_sym(m, 0);
    const tutti_tensor *pads = tutti__onnx_read_constant(m, 1, "the pads");
    options.mode = tutti__onnx_attr_string(m, "mode", "constant");
    if (!x.node || !pads || !spread_pads(m, tutti_sym_type(x).rank, pads, &options) ||
        !tutti__onnx_read_number(m, 2, 0, &options.value))
        return;
    tutti__onnx_made(m, 0, (tutti_pad)(x, &options));
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
