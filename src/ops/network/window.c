/* window.c: windows that slide over height and width, or depth too; see window.h. */
#include "ops/network/window.h"

#define LIMIT ((int64_t)1 << 31)

tutti_status tutti__need_ints(const tutti_infer *node, const char *name, int count, int64_t lowest,
                              const int64_t **ret)
{
    const int64_t *values;
    int given = tutti_attr_ints(node->attrs, node->attr_count, name, &values);
    if (given != count)
        return RULE_FAIL(node, TUTTI_INVALID, "attribute %s has %d numbers, needs %d", name, given,
                         count);
    for (int i = 0; i < count; i++)
        if (values[i] < lowest || values[i] >= LIMIT)
            return RULE_FAIL(node, TUTTI_INVALID, "attribute %s has %lld, needs at least %lld%s",
                             name, (long long)values[i], (long long)lowest,
                             values[i] >= LIMIT ? " and less than 2^31" : "");
    *ret = values;
    return TUTTI_OK;
}

static int64_t extent(const tutti_windows *w, int axis)
{
    return (w->size[axis] - 1) * w->dilation[axis] + 1;
}

/* Sets out and before of one axis; `after` is what explicit padding adds at the end. */
static void window_place(tutti_windows *w, int axis, const char *padding, int64_t before,
                         int64_t after)
{
    int64_t in = w->in[axis], stride = w->stride[axis];
    w->before[axis] = strcmp(padding, "explicit") == 0 ? before : 0;
    w->out[axis] = TUTTI_ANY;
    if (in == TUTTI_ANY)
        return;
    if (strcmp(padding, "same") == 0)
        w->out[axis] = in / stride + (in % stride != 0);
    if (w->size[axis] == TUTTI_ANY)
        return;
    if (strcmp(padding, "same") == 0) {
        int64_t total = (w->out[axis] - 1) * stride + extent(w, axis) - in;
        w->before[axis] = total > 0 ? total / 2 : 0;
    } else {
        int64_t room = in + w->before[axis] + after - extent(w, axis);
        w->out[axis] = room < 0 ? 0 : room / stride + 1;
    }
}

void tutti__window_taps(const tutti_windows *w, int axis, int64_t out, int64_t *ret_first,
                        int64_t *ret_end)
{
    int64_t start = tutti__window_start(w, axis, out), dilation = w->dilation[axis];
    int64_t room = w->in[axis] - start; /* to the end of the input */
    int64_t first = start < 0 ? (-start + dilation - 1) / dilation : 0;
    int64_t end = room <= 0 ? 0 : (room + dilation - 1) / dilation;
    *ret_first = first;
    *ret_end = end < w->size[axis] ? end : w->size[axis];
}

tutti_windows tutti__windows(const tutti_attr *attrs, int attr_count, const int64_t *in,
                             const int64_t *size)
{
    const int64_t *strides, *dilations, *pads;
    const char *padding = tutti_attr_string(attrs, attr_count, "padding");
    bool is_explicit = strcmp(padding, "explicit") == 0;
    tutti_windows w = {.axes = tutti_attr_ints(attrs, attr_count, "strides", &strides)};
    tutti_attr_ints(attrs, attr_count, "pads", &pads);
    bool dilated = tutti_attr_ints(attrs, attr_count, "dilations", &dilations) == w.axes;
    for (int axis = 0; axis < w.axes; axis++) {
        w.in[axis] = in[axis];
        w.size[axis] = size[axis];
        w.stride[axis] = strides[axis] > 0 ? strides[axis] : size[axis];
        w.dilation[axis] = dilated ? dilations[axis] : 1;
        window_place(&w, axis, padding, pads[2 * axis], is_explicit ? pads[2 * axis + 1] : 0);
    }
    return w;
}

static tutti_status check_padding(const tutti_infer *node, int axes)
{
    const int64_t *pads;
    const char *padding = RULE_STRING(node, "padding");
    TUTTI_TRY(tutti__need_ints(node, "pads", 2 * axes, 0, &pads));
    if (strcmp(padding, "valid") != 0 && strcmp(padding, "same") != 0 &&
        strcmp(padding, "explicit") != 0)
        return RULE_FAIL(
            node, TUTTI_INVALID,
            "padding is \"%s\", needs \"valid\", \"same\" or \"explicit\" (with pads = "
            "{%stop, bottom, left, right})",
            padding, axes == 3 ? "front, back, " : "");
    return TUTTI_OK;
}

static const char *axis_name(int axes, int axis)
{
    static const char *const names[] = {"depth", "height", "width"};
    return names[TUTTI_WINDOW_AXES - axes + axis];
}

static tutti_status check_attrs(const tutti_infer *node, int axes)
{
    const int64_t *ignored;
    bool dilated = tutti_attr_find(node->attrs, node->attr_count, "dilations") != NULL;
    TUTTI_TRY(tutti__need_ints(node, "strides", axes, dilated ? 1 : 0, &ignored));
    if (dilated)
        TUTTI_TRY(tutti__need_ints(node, "dilations", axes, 1, &ignored));
    return check_padding(node, axes);
}

tutti_status tutti__windows_infer(const tutti_infer *node, int axes, const int64_t *in,
                                  const int64_t *size, tutti_windows *ret)
{
    TUTTI_TRY(check_attrs(node, axes));
    for (int axis = 0; axis < axes; axis++) {
        const char *name = axis_name(axes, axis);
        if (size[axis] == 0 || size[axis] >= LIMIT || in[axis] >= LIMIT * LIMIT / 4)
            return RULE_FAIL(node, TUTTI_INVALID, "a window of %s %lld over an input of %s %lld",
                             name, (long long)size[axis], name, (long long)in[axis]);
    }
    tutti_windows w = tutti__windows(node->attrs, node->attr_count, in, size);
    for (int axis = 0; axis < axes; axis++)
        if (w.out[axis] == 0 && in[axis] > 0)
            return RULE_FAIL(node, TUTTI_INVALID,
                             "a window that spans %lld does not fit into %s %lld with padding "
                             "\"%s\"; use padding \"same\" or a larger input",
                             (long long)extent(&w, axis), axis_name(axes, axis),
                             (long long)in[axis], RULE_STRING(node, "padding"));
    *ret = w;
    return TUTTI_OK;
}

/* One axis: `both` is all of its padding. */
static int64_t natural(const char *padding, int64_t out, int64_t stride, int64_t span, int64_t both,
                       int64_t more)
{
    int64_t in = strcmp(padding, "same") == 0 ? out * stride : (out - 1) * stride + span;
    if (strcmp(padding, "explicit") == 0)
        in -= both;
    in = out == 0 ? more : in + more;
    return in < 0 ? 0 : in;
}

tutti_status tutti__windows_natural(const tutti_infer *node, int axes, const int64_t *out,
                                    const int64_t *size, const int64_t *more, int64_t *ret_in)
{
    const int64_t *strides, *dilations, *pads;
    const char *padding = RULE_STRING(node, "padding");
    TUTTI_TRY(check_attrs(node, axes));
    tutti_attr_ints(node->attrs, node->attr_count, "strides", &strides);
    tutti_attr_ints(node->attrs, node->attr_count, "dilations", &dilations);
    tutti_attr_ints(node->attrs, node->attr_count, "pads", &pads);
    for (int axis = 0; axis < axes; axis++) {
        if (out[axis] >= LIMIT / 8 || size[axis] == 0 || size[axis] >= LIMIT / 8)
            return RULE_FAIL(node, TUTTI_INVALID, "a window of %s %lld, %lld times",
                             axis_name(axes, axis), (long long)size[axis], (long long)out[axis]);
        ret_in[axis] = TUTTI_ANY;
        if (out[axis] == TUTTI_ANY || (size[axis] == TUTTI_ANY && strcmp(padding, "same") != 0))
            continue;
        ret_in[axis] =
            natural(padding, out[axis], strides[axis], (size[axis] - 1) * dilations[axis] + 1,
                    pads[2 * axis] + pads[2 * axis + 1], more[axis]);
    }
    return TUTTI_OK;
}

tutti_status tutti__size_infer(const tutti_infer *node, int axes, int64_t lowest, int like_index,
                               int first_axis, int64_t *ret_size)
{
    const int64_t *size = NULL;
    if (node->input_count > like_index) {
        size = node->inputs[like_index].dims + first_axis;
    } else {
        TUTTI_TRY(tutti__need_ints(node, "size", axes, lowest, &size));
    }
    memcpy(ret_size, size, (size_t)axes * sizeof *size);
    return TUTTI_OK;
}
