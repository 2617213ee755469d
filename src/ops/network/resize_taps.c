/* resize_taps.c: what each line of a resized axis is made of; see resize.h. */
#include <math.h>
#include <stdlib.h>

#include "base/container.h"
#include "ops/network/resize.h"

typedef struct tap_rule {
    const char *coordinates, *mode, *nearest;
    bool exclude, crop;
    double cubic;   /* Keys's a */
    double squeeze; /* 1, or the scale where antialias stretches the polynomial */
    int64_t reach;  /* taps on each side of the coordinate */
} tap_rule;

static tap_rule rule_of(const tutti_attr *attrs, int count, const tutti_resize_axis *a)
{
    tap_rule r = {.coordinates = tutti_attr_string(attrs, count, "coordinates"),
                  .mode = tutti_attr_string(attrs, count, "mode"),
                  .nearest = tutti_attr_string(attrs, count, "nearest_mode"),
                  .exclude = tutti_attr_int(attrs, count, "exclude_outside") != 0,
                  .cubic = tutti_attr_float(attrs, count, "cubic_coefficient"),
                  .squeeze = 1};
    bool antialias = tutti_attr_int(attrs, count, "antialias") != 0;
    int64_t half = strcmp(r.mode, "cubic") == 0 ? 2 : 1;
    r.crop = strcmp(r.coordinates, "tf_crop_and_resize") == 0;
    if (antialias && a->scale < 1 && strcmp(r.mode, "nearest") != 0)
        r.squeeze = a->scale;
    double reach = -floor(-(double)half / r.squeeze);
    double most = 8 * (double)a->in + 8; /* where a scale says less than an eighth of a line */
    r.reach = (int64_t)(reach > most ? most : reach);
    return r;
}

static double coordinate(const tap_rule *r, const tutti_resize_axis *a, int64_t o)
{
    double at = (double)o, in = (double)a->in, width = a->scale * in;
    double half = (at + 0.5) / a->scale - 0.5;
    if (strcmp(r->coordinates, "align_corners") == 0)
        return width == 1 ? 0 : at * (in - 1) / (width - 1);
    if (strcmp(r->coordinates, "asymmetric") == 0)
        return at / a->scale;
    if (strcmp(r->coordinates, "half_pixel_symmetric") == 0)
        return in / 2 * (1 - (double)a->out / width) + half;
    if (strcmp(r->coordinates, "pytorch_half_pixel") == 0)
        return width == 1 ? -0.5 : half;
    if (!r->crop)
        return half;
    double part = (a->end - a->start) * (in - 1);
    return a->start * (in - 1) + (width == 1 ? part / 2 : at * part / (width - 1));
}

/* Weight of an input at distance d, in stretched units. */
static double weight_at(const tap_rule *r, double d)
{
    double x = fabs(d), a = r->cubic;
    if (strcmp(r->mode, "linear") == 0)
        return x < 1 ? 1 - x : 0;
    if (x <= 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

static int64_t clamp(int64_t i, int64_t count)
{
    return i < 0 ? 0 : i >= count ? count - 1 : i;
}

static int64_t nearest(const tap_rule *r, double c)
{
    double base = ceil(c) - 1, ratio = c - base;
    bool next = strcmp(r->nearest, "round_prefer_floor") == 0  ? ratio > 0.5
                : strcmp(r->nearest, "round_prefer_ceil") == 0 ? ratio >= 0.5
                : strcmp(r->nearest, "floor") == 0             ? ratio == 1
                                                               : true;
    return (int64_t)base + next;
}

/* Adds weight to the tap of an index, which follows the last one or is it. */
static void add_tap(tutti_resize_taps *t, int64_t begin, int64_t *end, int64_t index, double weight)
{
    if (*end > begin && t->index[*end - 1] == index) {
        t->weight[*end - 1] += weight;
        return;
    }
    t->index[*end] = index;
    t->weight[(*end)++] = weight;
}

/* The taps of output o from `begin` on; returns their end. */
static int64_t put_taps(const tap_rule *r, const tutti_resize_axis *a, int64_t o,
                        tutti_resize_taps *t, int64_t begin)
{
    double c = coordinate(r, a, o), total = 0, kept = 0, limit = 4 * (double)a->in + 8;
    int64_t end = begin;
    if (r->crop && !(c >= 0 && c <= (double)(a->in - 1)))
        return begin;
    c = c > limit ? limit : c < -limit ? -limit : c; /* far outside it is all one edge */
    if (strcmp(r->mode, "nearest") == 0) {
        add_tap(t, begin, &end, clamp(nearest(r, c), a->in), 1);
        return end;
    }
    int64_t base = (int64_t)ceil(c) - 1;
    for (int64_t i = base - r->reach + 1; i <= base + r->reach; i++) {
        double weight = weight_at(r, r->squeeze * ((double)i - c));
        bool inside = i >= 0 && i < a->in;
        total += weight;
        kept += inside ? weight : 0;
        if (weight != 0 && (inside || !r->exclude))
            add_tap(t, begin, &end, clamp(i, a->in), weight);
    }
    double sum = r->exclude ? kept : total;
    for (int64_t i = begin; i < end && (r->exclude || r->squeeze != 1); i++)
        t->weight[i] /= sum;
    return end;
}

static tutti_status resize_taps_make(int64_t lines, int64_t taps, tutti_resize_taps **ret)
{
    int64_t bytes;
    tutti_resize_taps *t = NULL;
    if (tutti__mul_size(taps, 16, &bytes) && bytes < INT64_MAX / 2 - 8 * lines)
        t = calloc(1, sizeof *t + (size_t)(bytes + 8 * (lines + 1)));
    if (t == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %lld weights of a resized axis",
                          (long long)taps);
    t->count = lines;
    t->first = (int64_t *)(t + 1);
    t->index = t->first + lines + 1;
    t->weight = (double *)(t->index + taps);
    *ret = t;
    return TUTTI_OK;
}

/* What each input was used for, outputs in their order. */
static tutti_status transpose(const tutti_resize_taps *t, int64_t in, tutti_resize_taps **ret)
{
    tutti_resize_taps *back;
    int64_t taps = t->first[t->count];
    TUTTI_TRY(resize_taps_make(in, taps, &back));
    for (int64_t i = 0; i < taps; i++)
        back->first[t->index[i] + 1]++;
    for (int64_t i = 0; i < in; i++)
        back->first[i + 1] += back->first[i];
    for (int64_t o = 0; o < t->count; o++)
        for (int64_t i = t->first[o]; i < t->first[o + 1]; i++) {
            int64_t at = back->first[t->index[i]]++;
            back->index[at] = o;
            back->weight[at] = t->weight[i];
        }
    for (int64_t i = in; i > 0; i--)
        back->first[i] = back->first[i - 1];
    back->first[0] = 0;
    *ret = back;
    return TUTTI_OK;
}

tutti_status tutti__resize_taps(const tutti_attr *attrs, int attr_count,
                                const tutti_resize_axis *axis, bool backward,
                                tutti_resize_taps **ret)
{
    tap_rule rule = rule_of(attrs, attr_count, axis);
    tutti_resize_taps *t;
    int64_t most = 2 * rule.reach < axis->in ? 2 * rule.reach : axis->in, end = 0;
    TUTTI_TRY(resize_taps_make(axis->out, (most + 1) * axis->out, &t));
    for (int64_t o = 0; o < axis->out; o++) {
        t->first[o] = end;
        end = put_taps(&rule, axis, o, t, end);
    }
    t->first[axis->out] = end;
    if (backward) {
        tutti_resize_taps *forward = t;
        tutti_status status = transpose(forward, axis->in, &t);
        free(forward);
        TUTTI_TRY(status);
    }
    *ret = t;
    return TUTTI_OK;
}
