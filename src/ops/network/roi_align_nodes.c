/* roi_align_nodes.c: roi_align made of other operators, for the gradient of its gradient. What
 * roi.c does for one place it does for all: ceilings, floors, comparisons and casts pass no
 * gradient, so that only the weights depend on the regions. */
#include <math.h>

#include "ops/build.h"
#include "ops/network/roi_align.h"

/* Of all regions along one axis. A bin's samples are its places twice: their lower pixels, then
 * their upper ones. There are as many places as the largest region needs. */
typedef struct samples {
    tutti_sym places;        /* [regions]: how many a bin has; not less than 1 */
    tutti_sym is_any;        /* [regions]: whether it has any */
    tutti_sym exists;        /* [regions, 1, samples] */
    tutti_sym index, weight; /* [regions, bins, samples]; weight is 0 outside of the image */
} samples;

typedef struct axis_nodes {
    const tutti_gradient_call *node;
    int axis; /* 0 is height, 1 is width */
    int64_t bins;
    tutti_sym start, length; /* [regions] */
    tutti_sym last;          /* the last pixel: a scalar */
} axis_nodes;

static tutti_sym two_more(tutti_sym x)
{
    return tutti_expand_dims(tutti_expand_dims(x, 1), 2);
}

/* A region's place along an axis, in pixels. */
static axis_nodes axis_of(const tutti_gradient_call *node, int axis, tutti_sym x, tutti_sym regions)
{
    const int64_t *size;
    bool half = RULE_INT(node, "half_pixel") != 0;
    axis_nodes a = {.node = node, .axis = axis};
    tutti_attr_ints(node->attrs, node->attr_count, "size", &size);
    a.bins = size[axis];
    tutti_sym placed = tutti_mul(regions, RULE_FLOAT(node, "spatial_scale"));
    if (half)
        placed = tutti_add(placed, -0.5);
    a.start = tutti_squeeze(tutti_slice_axis(placed, 1, 1 - axis, 2 - axis), 1);
    a.length =
        tutti_sub(tutti_squeeze(tutti_slice_axis(placed, 1, 3 - axis, 4 - axis), 1), a.start);
    tutti_sym one = tutti__scalar_like(a.length, 1);
    if (!half)
        a.length = tutti_where(tutti_less(a.length, one), one, a.length);
    tutti_dtype dtype = tutti_sym_type(regions).dtype;
    a.last = tutti_add(tutti_cast(tutti_size(x, axis + 1), dtype), -1);
    return a;
}

/* How many places a bin of each region has; ret_numbers: 0, 1, … up to the most of them. */
static tutti_sym places_of(const axis_nodes *a, tutti_sym *ret_numbers)
{
    tutti_graph *graph = a->start.node->graph;
    tutti_dtype dtype = tutti_sym_type(a->start).dtype;
    int64_t ratio = RULE_INT(a->node, "sampling_ratio");
    if (ratio > 0) {
        *ret_numbers = tutti_range(graph, 0, (double)ratio, 1, dtype);
        return tutti_add(tutti_zeros_like(a->start), (double)ratio);
    }
    tutti_sym one = tutti_scalar(graph, dtype, 1);
    tutti_sym places = tutti_ceil(tutti_mul(a->length, 1 / (double)a->bins));
    *ret_numbers = tutti_range_dynamic(tutti_scalar(graph, dtype, 0),
                                       tutti_maximum(tutti_max(places), one), one);
    return places;
}

/* Where the places are: [regions, bins, places]. */
static tutti_sym positions(const axis_nodes *a, tutti_sym places, tutti_sym numbers)
{
    tutti_dtype dtype = tutti_sym_type(a->start).dtype;
    tutti_sym bins = tutti_range(a->start.node->graph, 0, (double)a->bins, 1, dtype);
    tutti_sym part = tutti_div(tutti_add(numbers, 0.5), two_more(places));
    part = tutti_mul(tutti_add(tutti_expand_dims(bins, 1), part), 1 / (double)a->bins);
    return tutti_add(two_more(a->start), tutti_mul(part, two_more(a->length)));
}

static samples samples_of(const axis_nodes *a)
{
    tutti_sym numbers = TUTTI_NO_SYM, given = places_of(a, &numbers);
    tutti_sym one = tutti__scalar_like(given, 1), none = tutti__scalar_like(given, 0);
    samples s = {.places = tutti_maximum(given, one), .is_any = tutti_greater(given, none)};
    tutti_sym at = positions(a, s.places, numbers), exists = tutti_less(numbers, two_more(given));
    tutti_sym is_inside =
        tutti_logical_and(tutti_greater_equal(at, -1), tutti_less_equal(at, tutti_add(a->last, 1)));
    at = tutti_where(tutti_greater_equal(at, a->last), a->last,
                     tutti_where(tutti_less_equal(at, none), none, at));
    tutti_sym low = tutti_floor(at), high = tutti_minimum(tutti_add(low, 1), a->last);
    tutti_sym upper = tutti_where(is_inside, tutti_sub(at, low), none);
    tutti_sym lower = tutti_where(is_inside, tutti_sub(one, tutti_sub(at, low)), none);
    s.exists = tutti_concatenate(TUTTI_SYMS(exists, exists), .axis = 2);
    s.index = tutti_cast(tutti_concatenate(TUTTI_SYMS(low, high), .axis = 2), TUTTI_I64);
    s.weight = tutti_concatenate(TUTTI_SYMS(lower, upper), .axis = 2);
    return s;
}

/* [regions, b, s] of rows as [regions, b, s, 1, 1], of columns as [regions, 1, 1, b, s]. */
static tutti_sym beside(tutti_sym x, bool is_column)
{
    int axis = is_column ? 1 : 3;
    return tutti_expand_dims(tutti_expand_dims(x, axis), axis);
}

/* The largest of the samples that there are; of none, 0. */
static tutti_sym largest(const samples *rows, const samples *columns, tutti_sym values)
{
    tutti_sym exists =
        tutti_logical_and(beside(rows->exists, false), beside(columns->exists, true));
    values = tutti_where(tutti_expand_dims(exists, 5), values, -HUGE_VAL);
    tutti_sym y = tutti_max(values, .axes = TUTTI_AXES(2, 4));
    tutti_sym is_any = two_more(two_more(tutti_logical_and(rows->is_any, columns->is_any)));
    return tutti_where(tutti_squeeze(is_any, 4), y, 0);
}

static tutti_sym mean(const samples *rows, const samples *columns, tutti_sym values)
{
    tutti_sym exists =
        tutti_logical_and(beside(rows->exists, false), beside(columns->exists, true));
    values = tutti_where(tutti_expand_dims(exists, 5), values, 0);
    tutti_sym count = two_more(tutti_mul(rows->places, columns->places));
    return tutti_div(tutti_sum(values, .axes = TUTTI_AXES(2, 4)), tutti_expand_dims(count, 3));
}

void tutti__roi_align_nodes(tutti_graph *body, int count, const tutti_sym *args, tutti_sym *ret,
                            void *context)
{
    const tutti_gradient_call *node = context;
    tutti_sym x = tutti__widened(args[TUTTI_ROI_X]);
    tutti_sym regions = tutti__widened(args[TUTTI_ROI_REGIONS]);
    tutti_sym images = tutti_cast(args[TUTTI_ROI_IMAGES], TUTTI_I64);
    axis_nodes axes[] = {axis_of(node, 0, x, regions), axis_of(node, 1, x, regions)};
    samples rows = samples_of(&axes[0]), columns = samples_of(&axes[1]);
    tutti_sym weight = tutti_mul(beside(rows.weight, false), beside(columns.weight, true));
    tutti_sym index[] = {tutti_broadcast_like(beside(two_more(images), false), weight),
                         tutti_broadcast_like(beside(rows.index, false), weight),
                         tutti_broadcast_like(beside(columns.index, true), weight)};
    tutti_sym pixels = tutti_gather_nd(x, tutti_stack(3, index, .axis = 5));
    tutti_sym values = tutti_mul(pixels, tutti_expand_dims(weight, 5));
    bool is_max = strcmp(RULE_STRING(node, "mode"), "max") == 0;
    tutti_sym y = is_max ? largest(&rows, &columns, values) : mean(&rows, &columns, values);
    (void)body;
    (void)count;
    ret[0] = tutti__narrowed(y, tutti_sym_type(args[TUTTI_ROI_X]).dtype);
}
