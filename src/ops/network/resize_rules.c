/* resize_rules.c: sizes, scales and other attributes of resize and its gradient; see resize.h. */
#include <math.h>

#include "ops/network/resize.h"

#define LIMIT ((int64_t)1 << 31)

static bool is_one_of(const char *text, const char *const *words)
{
    while (*words != NULL && strcmp(text, *words) != 0)
        words++;
    return *words != NULL;
}

static tutti_status check_word(const tutti_infer *node, const char *attr, const char *const *words,
                               const char *listed)
{
    const char *text = RULE_STRING(node, attr);
    if (is_one_of(text, words))
        return TUTTI_OK;
    return RULE_FAIL(node, TUTTI_INVALID, "%s is \"%s\", needs one of %s", attr, text, listed);
}

static tutti_status check_words(const tutti_infer *node)
{
    static const char *const modes[] = {"nearest", "linear", "cubic", NULL};
    static const char *const coordinates[] = {"half_pixel",
                                              "pytorch_half_pixel",
                                              "half_pixel_symmetric",
                                              "align_corners",
                                              "asymmetric",
                                              "tf_crop_and_resize",
                                              NULL};
    static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil", NULL};
    static const char *const aspects[] = {"stretch", "not_larger", "not_smaller", NULL};
    TUTTI_TRY(check_word(node, "mode", modes, "nearest, linear, cubic"));
    TUTTI_TRY(check_word(node, "coordinates", coordinates,
                         "half_pixel, pytorch_half_pixel, half_pixel_symmetric, align_corners, "
                         "asymmetric, tf_crop_and_resize"));
    TUTTI_TRY(check_word(node, "nearest_mode", nearest,
                         "round_prefer_floor, round_prefer_ceil, floor, ceil"));
    return check_word(node, "aspect", aspects, "stretch, not_larger, not_smaller");
}

static int floats_of(const tutti_attr *attrs, int attr_count, const char *name, const double **ret)
{
    const tutti_attr *attr = tutti_attr_find(attrs, attr_count, name);
    *ret = attr->value.floats;
    return attr->count;
}

int tutti__resize_axes(const tutti_attr *attrs, int attr_count, int rank, int *ret)
{
    const int64_t *axes;
    uint32_t seen = 0;
    int count = tutti_attr_ints(attrs, attr_count, "axes", &axes);
    if (count == 0) {
        for (int i = 1; i < rank - 1; i++)
            ret[count++] = i;
        return count;
    }
    for (int i = 0; i < count; i++) {
        int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (i >= rank || axis < 0 || axis >= rank || (seen >> axis & 1))
            return -1;
        seen |= 1u << axis;
        ret[i] = (int)axis;
    }
    return count;
}

/* Sizes that keep the aspect: one scale for all axes. */
static void keep_aspect(const char *aspect, tutti_resizing *r)
{
    bool smaller = strcmp(aspect, "not_larger") == 0, known = true;
    double scale = 0;
    if (strcmp(aspect, "stretch") == 0)
        return;
    for (int i = 0; i < r->count; i++) {
        double own = r->axes[i].in > 0 ? (double)r->axes[i].out / (double)r->axes[i].in : 1;
        scale = i == 0 || (smaller ? own < scale : own > scale) ? own : scale;
        known = known && r->axes[i].in != TUTTI_ANY;
    }
    for (int i = 0; i < r->count; i++) {
        r->axes[i].scale = scale;
        r->axes[i].out = known ? (int64_t)floor(scale * (double)r->axes[i].in + 0.5) : TUTTI_ANY;
    }
}

tutti_resizing tutti__resize_of(const tutti_attr *attrs, int attr_count, int rank,
                                const int64_t *dims)
{
    int axes[TUTTI_MAX_RANK];
    const int64_t *sizes;
    const double *scales, *roi;
    tutti_resizing r = {.count = tutti__resize_axes(attrs, attr_count, rank, axes)};
    bool sized = tutti_attr_ints(attrs, attr_count, "sizes", &sizes) > 0;
    bool scaled = floats_of(attrs, attr_count, "scales", &scales) > 0;
    bool cut = floats_of(attrs, attr_count, "roi", &roi) > 0;
    for (int i = 0; i < r.count; i++) {
        int64_t in = dims[axes[i]];
        tutti_resize_axis a = {.axis = axes[i], .in = in, .out = TUTTI_ANY, .end = 1};
        if (sized)
            a.out = sizes[i];
        else if (in != TUTTI_ANY)
            a.out = (int64_t)floor((double)in * scales[i]);
        a.scale = scaled ? scales[i] : in > 0 ? (double)a.out / (double)in : 1;
        a.start = cut ? roi[i] : 0;
        a.end = cut ? roi[r.count + i] : 1;
        r.axes[i] = a;
    }
    if (sized && !scaled)
        keep_aspect(tutti_attr_string(attrs, attr_count, "aspect"), &r);
    return r;
}

/* As many numbers as axes, or none; finite, and above `lowest`. */
static tutti_status check_numbers(const tutti_infer *node, const char *name, int count,
                                  double lowest)
{
    const double *values;
    int given = floats_of(node->attrs, node->attr_count, name, &values);
    if (given != 0 && given != count)
        return RULE_FAIL(node, TUTTI_INVALID, "%s has %d numbers, needs %d", name, given, count);
    for (int i = 0; i < given; i++)
        if (!isfinite(values[i]) || values[i] <= lowest || values[i] > 1e9)
            return RULE_FAIL(node, TUTTI_INVALID, "%s has %g, needs numbers above %g, at most 1e9",
                             name, values[i], lowest);
    return TUTTI_OK;
}

static tutti_status check_sizes(const tutti_infer *node, int count)
{
    const int64_t *sizes;
    const double *scales;
    int given = tutti_attr_ints(node->attrs, node->attr_count, "sizes", &sizes);
    TUTTI_TRY(check_numbers(node, "scales", count, 0));
    TUTTI_TRY(check_numbers(node, "roi", 2 * count, -1e9));
    if (given == 0 && floats_of(node->attrs, node->attr_count, "scales", &scales) == 0)
        return RULE_FAIL(node, TUTTI_INVALID, "neither sizes nor scales are given");
    if (given != 0 && given != count)
        return RULE_FAIL(node, TUTTI_INVALID, "sizes has %d numbers, needs %d, one for each axis",
                         given, count);
    for (int i = 0; i < given; i++)
        if (sizes[i] < 0 || sizes[i] >= LIMIT)
            return RULE_FAIL(node, TUTTI_INVALID, "sizes has %lld, needs 0 to 2^31 - 1",
                             (long long)sizes[i]);
    return TUTTI_OK;
}

tutti_status tutti__resize_infer(const tutti_infer *node, const tutti_type *x, tutti_resizing *ret)
{
    char text[TUTTI_TYPE_TEXT];
    int axes[TUTTI_MAX_RANK],
        count = tutti__resize_axes(node->attrs, node->attr_count, x->rank, axes);
    double value = RULE_FLOAT(node, "cubic_coefficient");
    if (count < 1)
        return RULE_FAIL(node, TUTTI_INVALID,
                         "x is %s; axes must be different ones of its own, by default all between "
                         "batch and channels, and at least one",
                         tutti_type_text(x, text));
    TUTTI_TRY(check_words(node));
    TUTTI_TRY(check_sizes(node, count));
    if (!isfinite(value) || fabs(value) > 1e6)
        return RULE_FAIL(node, TUTTI_INVALID, "cubic_coefficient is %g", value);
    tutti_resizing r = tutti__resize_of(node->attrs, node->attr_count, x->rank, x->dims);
    for (int i = 0; i < count; i++)
        if (r.axes[i].in >= LIMIT || r.axes[i].out >= LIMIT ||
            (r.axes[i].in == 0 && r.axes[i].out > 0))
            return RULE_FAIL(node, TUTTI_INVALID, "axis %d of x, %s, cannot become %lld long",
                             r.axes[i].axis, tutti_type_text(x, text), (long long)r.axes[i].out);
    *ret = r;
    return TUTTI_OK;
}

int tutti__resize_split(const tutti_infer *node, int capacity, tutti_split *ret)
{
    tutti_ways ways = {0, capacity, ret};
    int axes[TUTTI_MAX_RANK], rank = node->inputs[0].rank;
    int count = tutti__resize_axes(node->attrs, node->attr_count, rank, axes);
    for (int axis = 0; axis < rank; axis++) {
        bool resized = false;
        for (int i = 0; i < count; i++)
            resized = resized || axes[i] == axis;
        if (!resized)
            tutti__way_add(&ways, SLOTS(axis, axis), SLOTS(axis));
    }
    return ways.count;
}

void tutti__resize_cost(const tutti_infer *node, tutti_cost *ret)
{
    int axes[TUTTI_MAX_RANK];
    const char *mode = RULE_STRING(node, "mode");
    int count = tutti__resize_axes(node->attrs, node->attr_count, node->inputs[0].rank, axes);
    int taps = strcmp(mode, "nearest") == 0 ? 0 : strcmp(mode, "linear") == 0 ? 2 : 4;
    double larger = tutti__elements(&node->outputs[0]) > tutti__elements(&node->inputs[0])
                        ? tutti__elements(&node->outputs[0])
                        : tutti__elements(&node->inputs[0]);
    tutti__cost_flops(node, 2.0 * taps * count * larger, ret);
}
