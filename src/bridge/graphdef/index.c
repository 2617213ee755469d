/* index.c: TensorFlow's operators that take elements by their places, or put them there.
 */
#include "bridge/formulas.h"
#include "bridge/graphdef/rules.h"

#include <string.h>

static tutti_sym number(tutti_sym beside, int64_t value)
{
    return tutti_scalar(tutti_sym_graph(beside), TUTTI_I64, (double)value);
}

/* ---- slices ---- */

/* One axis of a slice: numbers (GRAPHDEF_UNKNOWN: the symbol says it). */
typedef struct cut {
    int64_t begin, end, step;
    tutti_sym begin_sym, end_sym;
    bool from_first, to_last, drops;
} cut;

/* Element `place` of a vector as a scalar of i64. */
static tutti_sym index_element(tutti_sym list, int place)
{
    return tutti_cast(tutti_reshape(tutti_slice_axis(list, 0, place, place + 1)), TUTTI_I64);
}

/* A place counted from the end where it is negative, and at most at an end. */
static tutti_sym placed(tutti_sym place, tutti_sym size)
{
    tutti_sym zero = number(place, 0);
    place = tutti_where(tutti_less(place, zero), tutti_add(place, size), place);
    return tutti_minimum(tutti_maximum(place, zero), size);
}

static tutti_sym end_of(int64_t known, tutti_sym sym, tutti_sym beside)
{
    return known == GRAPHDEF_UNKNOWN ? sym : number(beside, known);
}

/* Ends that are computed: rows begin, begin + step, … along an axis. */
static tutti_sym cut_later(tutti_graphdef_import *m, tutti_sym x, int axis, const cut *c)
{
    tutti_sym size = tutti_size(x, axis);
    if (c->step < 1)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "goes backwards from a place that is computed");
    tutti_sym begin =
        c->from_first ? number(x, 0) : placed(end_of(c->begin, c->begin_sym, x), size);
    if (c->drops)
        return tutti_gather(x, tutti_reshape(begin, 1), axis);
    tutti_sym end = c->to_last ? size : placed(end_of(c->end, c->end_sym, x), size);
    return tutti_gather(x, tutti_range_dynamic(begin, end, number(x, c->step)), axis);
}

static bool is_static(const cut *c)
{
    return (c->from_first || c->begin != GRAPHDEF_UNKNOWN) &&
           (c->to_last || c->drops || c->end != GRAPHDEF_UNKNOWN);
}

/* The cuts of all axes, then axes dropped and axes made (`shape` as it is after all: 1 where an
 * axis is new). */
static tutti_sym cut_all(tutti_graphdef_import *m, tutti_sym x, int count, const cut *cuts)
{
    tutti_slice_options o = {.struct_size = sizeof o};
    o.begin.count = o.end.count = o.step.count = count;
    for (int i = 0; i < count; i++) {
        const cut *c = &cuts[i];
        bool now = is_static(c);
        bool back = now && c->step < 0;
        o.step.values[i] = now ? c->step : 1;
        o.begin.values[i] = !now || c->from_first ? (back ? TUTTI_LAST : TUTTI_FIRST) : c->begin;
        o.end.values[i] = !now || c->to_last ? (back ? TUTTI_FIRST : TUTTI_LAST) : c->end;
        if (now && c->drops)
            o.end.values[i] = c->begin == -1 ? TUTTI_LAST : c->begin + 1;
    }
    x = tutti_slice_with(x, &o);
    for (int i = 0; m->status == TUTTI_OK && i < count; i++)
        if (!is_static(&cuts[i]))
            x = cut_later(m, x, i, &cuts[i]);
    return x;
}

typedef struct strided {
    tutti_axes begin, end, step, drop, fresh;
    int64_t begin_mask, end_mask, ellipsis, new_mask, shrink;
    int count; /* of cuts */
    cut cuts[TUTTI_MAX_RANK];
} strided;

/* Entry i of begin, end and step as a cut of the next axis. */
static void add_cut(strided *s, int i, tutti_sym begin, tutti_sym end)
{
    cut *c = &s->cuts[s->count];
    *c = (cut){.begin = s->begin.values[i], .end = s->end.values[i], .step = s->step.values[i]};
    c->drops = s->shrink >> i & 1;
    c->from_first = !c->drops && (s->begin_mask >> i & 1);
    c->to_last = !c->drops && (s->end_mask >> i & 1);
    c->step = c->drops ? 1 : c->step;
    if (c->begin == GRAPHDEF_UNKNOWN)
        c->begin_sym = index_element(begin, i);
    if (c->end == GRAPHDEF_UNKNOWN)
        c->end_sym = index_element(end, i);
    if (c->drops)
        s->drop.values[s->drop.count++] = s->count;
    s->count++;
}

/* x[begin:end:step] with masks, bit i for entry i: begin_mask and end_mask leave an end open,
 * ellipsis_mask stands for all axes that are not named, new_axis_mask makes an axis of 1,
 * shrink_axis_mask takes one element and drops the axis. */
static bool read_spec(tutti_graphdef_import *m, strided *s, int rank, tutti_sym begin,
                      tutti_sym end)
{
    int entries = s->begin.count, named = 0, result = 0;
    for (int i = 0; i < entries; i++)
        named += !(s->new_mask >> i & 1) && !(s->ellipsis >> i & 1);
    if (s->end.count != entries || s->step.count != entries || named > rank)
        tutti__graphdef_fail(m, TUTTI_INVALID, "names %d axes of a tensor of %d", named, rank);
    for (int i = 0; m->status == TUTTI_OK && i < entries; i++) {
        if (s->ellipsis >> i & 1) {
            for (int k = named; k < rank && s->count < TUTTI_MAX_RANK; k++, result++)
                s->cuts[s->count++] = (cut){.from_first = true, .to_last = true, .step = 1};
            named = rank;
        } else if (s->new_mask >> i & 1) {
            if (s->fresh.count < TUTTI_MAX_RANK)
                s->fresh.values[s->fresh.count++] = result++;
        } else if (s->count < TUTTI_MAX_RANK) {
            add_cut(s, i, begin, end);
            result += !(s->shrink >> i & 1);
        }
    }
    return m->status == TUTTI_OK;
}

static void read_strided_slice(tutti_graphdef_import *m)
{
    strided s = {.begin_mask = attr_int(m, "begin_mask", 0),
                 .end_mask = attr_int(m, "end_mask", 0),
                 .ellipsis = attr_int(m, "ellipsis_mask", 0),
                 .new_mask = attr_int(m, "new_axis_mask", 0),
                 .shrink = attr_int(m, "shrink_axis_mask", 0)};
    tutti_sym x = IN(0), begin = IN(1), end = IN(2);
    if (!tutti__graphdef_shape_in(m, 1, &s.begin) || !tutti__graphdef_shape_in(m, 2, &s.end) ||
        !tutti__graphdef_ints(m, 3, &s.step) ||
        !read_spec(m, &s, tutti_sym_type(x).rank, begin, end))
        return;
    tutti_sym y = cut_all(m, x, s.count, s.cuts);
    if (s.drop.count > 0)
        y = (tutti_squeeze)(y, s.drop.count, s.drop.values);
    for (int i = 0; i < s.fresh.count; i++)
        y = tutti_expand_dims(y, (int)s.fresh.values[i]);
    made(m, y);
}

/* Slice(x, begin, size); -1 is all that is left. */
static void read_slice(tutti_graphdef_import *m)
{
    tutti_axes begin, size;
    cut cuts[TUTTI_MAX_RANK] = {{0}};
    tutti_sym x = IN(0), begins = IN(1), sizes = IN(2);
    if (m->status == TUTTI_OK && tutti_sym_type(x).rank == 1) {
        begins = tutti_reshape(begins, 1);
        sizes = tutti_reshape(sizes, 1);
    }
    if (m->status != TUTTI_OK || !tutti__graphdef_numbers(m, begins, &begin) ||
        !tutti__graphdef_numbers(m, sizes, &size)) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "the number of its dimensions is not known");
        return;
    }
    for (int i = 0; i < begin.count && i < size.count; i++) {
        bool known = begin.values[i] != GRAPHDEF_UNKNOWN && size.values[i] != GRAPHDEF_UNKNOWN;
        cut *c = &cuts[i];
        *c = (cut){.begin = begin.values[i], .step = 1, .to_last = size.values[i] == -1};
        c->end = known ? begin.values[i] + size.values[i] : GRAPHDEF_UNKNOWN;
        if (c->begin == GRAPHDEF_UNKNOWN)
            c->begin_sym = index_element(begins, i);
        if (!known && !c->to_last)
            c->end_sym = tutti_add(index_element(begins, i), index_element(sizes, i));
    }
    made(m, cut_all(m, x, begin.count < size.count ? begin.count : size.count, cuts));
}

/* ---- gathering ---- */

/* y[b, k…, r…] = x[b, places[b, k…], r…]: the first `batch` axes go in step. Row p of batch b is
 * row b * n + p of x as [batches * n, r…]. */
static tutti_sym gather_in_step(tutti_graphdef_import *m, tutti_sym x, tutti_sym places, int batch)
{
    tutti_type type = tutti_sym_type(x), at = tutti_sym_type(places);
    int64_t rows[TUTTI_MAX_RANK] = {-1}, ones[TUTTI_MAX_RANK];
    tutti_axes first = {.count = batch};
    if (batch >= type.rank || batch > at.rank) {
        tutti__graphdef_fail(m, TUTTI_INVALID, "has too few dimensions");
        return TUTTI_NO_SYM;
    }
    for (int i = batch + 1; i < type.rank; i++) {
        rows[i - batch] = type.dims[i];
        if (type.dims[i] < 0)
            tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "dimension %d must be known", i);
    }
    for (int i = 0; i < batch; i++)
        first.values[i] = i;
    for (int i = 0; i < at.rank; i++)
        ones[i] = i < batch ? at.dims[i] : 1;
    tutti_sym size = tutti_size(x, batch), zero = number(x, 0), one = number(x, 1);
    tutti_sym count = (tutti_size)(places, batch, first.values);
    tutti_sym start = tutti_mul(tutti_range_dynamic(zero, count, one), size);
    ones[0] = batch == 1 ? -1 : ones[0];
    places = tutti_add(tutti_cast(places, TUTTI_I64), (tutti_reshape)(start, at.rank, ones));
    return tutti_gather((tutti_reshape)(x, type.rank - batch, rows), places, 0);
}

static void read_gather(tutti_graphdef_import *m)
{
    tutti_axes axis = {.count = 1};
    tutti_sym x = IN(0), at = IN(1);
    int64_t batch = attr_int(m, "batch_dims", 0);
    if (m->status == TUTTI_OK && strcmp(m->node->op, "GatherV2") == 0 &&
        !tutti__graphdef_ints(m, 2, &axis))
        return;
    if (m->status != TUTTI_OK)
        return;
    tutti_type type = tutti_sym_type(at);
    batch += batch < 0 ? type.rank : 0;
    axis.values[0] += axis.values[0] < 0 ? tutti_sym_type(x).rank : 0;
    if (batch == 0)
        made(m, tutti_gather(x, at, (int)axis.values[0]));
    else if (batch > 0 && axis.values[0] == batch)
        made(m, gather_in_step(m, x, at, (int)batch));
    else
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "has %lld axes in step and gathers along %lld",
                             (long long)batch, (long long)axis.values[0]);
}

static void read_gather_nd(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0), at = IN(1);
    if (m->status == TUTTI_OK)
        made(m, tutti_gather_nd(x, at));
}

/* The first lengths[b] elements of row b backwards. */
static void read_reverse_sequence(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0), lengths = IN(1);
    if (attr_int(m, "seq_dim", 0) != 1 || attr_int(m, "batch_dim", 0) != 0)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "wants the batch first and time next");
    if (m->status != TUTTI_OK)
        return;
    tutti_sym time = tutti_range_dynamic(number(x, 0), tutti_size(x, 1), number(x, 1));
    tutti_sym length = tutti_expand_dims(tutti_cast(lengths, TUTTI_I64), 1);
    tutti_sym back = tutti_sub(tutti_add(length, -1), time);
    made(m, gather_in_step(m, x, tutti_where(tutti_less(time, length), back, time), 1));
}

/* ---- scattering ---- */

static void read_scatter(tutti_graphdef_import *m)
{
    tutti_sym places = IN(0), updates = IN(1), like = tutti__graphdef_like(m, 2);
    if (m->status == TUTTI_OK)
        made(m, tutti_scatter_nd_like(places, updates,
                                      tutti_cast(like, tutti_sym_type(updates).dtype)));
}

/* x, with updates added at places, or in place of what is there, of equal places the last. */
static void read_tensor_scatter(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0), places = IN(1), updates = IN(2);
    if (m->status != TUTTI_OK)
        return;
    if (strcmp(m->node->op, "TensorScatterAdd") == 0) {
        made(m, tutti_add(x, tutti_scatter_nd_like(places, updates, x)));
        return;
    }
    tutti_sym y = tutti__formula_scatter(x, places, updates, NULL);
    if (y.node)
        made(m, y);
    else
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "the length of its indices must be known");
}

/* y[k] = sum of x[i] over ids[i] = k; k < input 2, or the largest id. Rows with a negative id go to
 * one more row, which is dropped. */
static void read_segment_sum(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0), ids = IN(1);
    bool sorted = strcmp(m->node->op, "SegmentSum") == 0;
    tutti_sym count = sorted ? TUTTI_NO_SYM : IN(2);
    if (m->status != TUTTI_OK)
        return;
    tutti_type type = tutti_sym_type(x);
    if (tutti_sym_type(ids).rank != 1 || type.rank < 1) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "its ids have more than one dimension");
        return;
    }
    ids = tutti_cast(ids, TUTTI_I64);
    count = sorted ? tutti_add(tutti_max(ids), 1) : tutti_cast(count, TUTTI_I64);
    if (!sorted)
        ids = tutti_where(tutti_less(ids, number(ids, 0)), tutti_reshape(count), ids);
    type.dims[0] = TUTTI_ANY;
    tutti_sym shape = tutti_reshape(sorted ? count : tutti_add(count, 1), 1);
    if (type.rank > 1)
        shape =
            tutti_concatenate(TUTTI_SYMS(shape, tutti_slice_axis(tutti_shape(x), 0, 1, type.rank)));
    tutti_sym like = (tutti_fill_dynamic)(shape, type.dtype, 0, type.rank, type.dims);
    tutti_sym y = tutti_scatter_nd_like(tutti_expand_dims(ids, 1), x, like);
    made(m, sorted ? y : tutti_slice_axis(y, 0, 0, -1));
}

/* ---- places ---- */

static void read_where(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m, tutti_transpose(tutti_nonzero(x), 1, 0));
}

static void read_one_hot(tutti_graphdef_import *m)
{
    tutti_axes depth;
    tutti_sym x = IN(0), on = IN(2), off = IN(3);
    int64_t order[TUTTI_MAX_RANK], axis = attr_int(m, "axis", -1);
    if (m->status != TUTTI_OK || !tutti__graphdef_ints(m, 1, &depth) || depth.count != 1)
        return;
    int rank = tutti_sym_type(x).rank;
    tutti_sym hit = tutti_one_hot(x, depth.values[0], .on = 1, .dtype = TUTTI_BOOL);
    tutti_sym y = tutti_where(hit, on, off);
    if (axis < 0 || axis >= rank) {
        made(m, y);
        return;
    }
    for (int i = 0; i <= rank && i < TUTTI_MAX_RANK; i++)
        order[i] = i < axis ? i : i == axis ? rank : i - 1;
    made(m, (tutti_transpose)(y, rank + 1, order));
}

static void read_top_k(tutti_graphdef_import *m)
{
    tutti_axes k = {.count = 1, .values = {attr_int(m, "k", 1)}};
    const tutti_graphdef_attr *type = tutti__graphdef_attr(m->node, "index_type");
    tutti_sym x = IN(0);
    if (m->status != TUTTI_OK ||
        (strcmp(m->node->op, "TopKV2") == 0 && !tutti__graphdef_ints(m, 1, &k)) || k.count != 1)
        return;
    tutti_sym y = tutti_top_k(x, k.values[0]);
    made(m, y);
    if (tutti_graph_check(m->graph) == TUTTI_OK && type && type->type == 9)
        tutti__graphdef_give(
            m, 1, &(tutti_graphdef_value){.sym = tutti_cast(tutti_sym_output(y, 1), TUTTI_I64)});
}

const tutti_graphdef_entry tutti__graphdef_indices[] = {
    {"StridedSlice", read_strided_slice},
    {"Slice", read_slice},
    {"Gather", read_gather},
    {"GatherV2", read_gather},
    {"GatherNd", read_gather_nd},
    {"ReverseSequence", read_reverse_sequence},
    {"ScatterNd", read_scatter},
    {"TensorScatterAdd", read_tensor_scatter},
    {"TensorScatterUpdate", read_tensor_scatter},
    {"UnsortedSegmentSum", read_segment_sum},
    {"SegmentSum", read_segment_sum},
    {"Where", read_where},
    {"OneHot", read_one_hot},
    {"TopK", read_top_k},
    {"TopKV2", read_top_k},
    {NULL, NULL},
};
