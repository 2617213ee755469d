/* shapes.c: TensorFlow's operators that give the same elements another shape or order, or
 * some of them. */
#include "bridge/graphdef/rules.h"

#include <string.h>

static void read_reshape(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m, tutti__graphdef_reshaped(m, x, 1));
}

static void read_squeeze(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *axes = tutti__graphdef_attr(m->node, "squeeze_dims");
    tutti_sym x = IN(0);
    axes = axes ? axes : tutti__graphdef_attr(m->node, "axis");
    if (m->status == TUTTI_OK)
        made(m,
             (tutti_squeeze)(x, axes ? (int)axes->ints.count : 0, axes ? axes->ints.items : NULL));
}

static void read_expand_dims(tutti_graphdef_import *m)
{
    tutti_axes axis;
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK && tutti__graphdef_ints(m, 1, &axis) && axis.count == 1)
        made(m, tutti_expand_dims(x, (int)axis.values[0]));
}

static void read_transpose(tutti_graphdef_import *m)
{
    tutti_axes order;
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK && tutti__graphdef_ints(m, 1, &order))
        made(m, (tutti_transpose)(x, order.count, order.values));
}

/* Repeating by numbers that are computed: [1, d0, 1, d1, …] repeated to [m0, d0, m1, d1, …]. */
static void tile_later(tutti_graphdef_import *m, tutti_sym x, tutti_sym times)
{
    int rank = tutti_sym_type(x).rank;
    int64_t open[TUTTI_MAX_RANK], pairs = 2 * rank;
    if (pairs > TUTTI_MAX_RANK) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED,
                             "repeats more than %d dimensions by numbers "
                             "that are computed",
                             TUTTI_MAX_RANK / 2);
        return;
    }
    for (int i = 0; i < TUTTI_MAX_RANK; i++)
        open[i] = TUTTI_ANY;
    times = tutti_cast(times, TUTTI_I64);
    tutti_sym shape = tutti_shape(x);
    tutti_sym from =
        tutti_reshape(tutti_stack(TUTTI_SYMS(tutti_ones_like(shape), shape), .axis = 1), -1);
    tutti_sym to = tutti_reshape(tutti_stack(TUTTI_SYMS(times, shape), .axis = 1), -1);
    tutti_sym y =
        tutti_reshape_like(x, (tutti_fill_dynamic)(from, TUTTI_BOOL, 0, (int)pairs, open));
    y = tutti_broadcast_like(y, (tutti_fill_dynamic)(to, TUTTI_BOOL, 0, (int)pairs, open));
    made(m, tutti_reshape_like(
                y, (tutti_fill_dynamic)(tutti_mul(times, shape), TUTTI_BOOL, 0, rank, open)));
}

static void read_tile(tutti_graphdef_import *m)
{
    tutti_axes times;
    tutti_sym x = IN(0), by = IN(1);
    if (m->status != TUTTI_OK)
        return;
    if (!tutti__graphdef_try_value(m, 1))
        tile_later(m, x, by);
    else if (tutti__graphdef_ints(m, 1, &times))
        made(m, (tutti_tile)(x, times.count, times.values));
}

/* ConcatV2 has its axis last, Concat first; Pack as an attribute; AddN adds. */
static void read_join(tutti_graphdef_import *m)
{
    tutti_axes axis = {.count = 1};
    bool last = strcmp(m->node->op, "ConcatV2") == 0, first = strcmp(m->node->op, "Concat") == 0;
    int count = tutti__graphdef_inputs(m->node) - last - first;
    tutti_sym *parts = tutti__graphdef_take(m, count > 0 ? (size_t)count : 1, sizeof *parts);
    if (count < 1)
        tutti__graphdef_fail(m, TUTTI_CORRUPT, "has %d inputs", count);
    for (int i = 0; m->status == TUTTI_OK && i < count; i++)
        parts[i] = IN(i + first);
    if (m->status != TUTTI_OK ||
        ((last || first) && !tutti__graphdef_ints(m, first ? 0 : count, &axis)))
        return;
    if (last || first) {
        made(m, tutti_concatenate(count, parts, .axis = (int)axis.values[0]));
    } else if (strcmp(m->node->op, "Pack") == 0) {
        made(m, tutti_stack(count, parts, .axis = (int)attr_int(m, "axis", 0)));
    } else {
        for (int i = 1; i < count; i++)
            parts[0] = tutti_add(parts[0], parts[i]);
        made(m, parts[0]);
    }
}

/* Mirrored with the edge itself. */
static tutti_sym symmetric(tutti_sym x, const tutti_pad_options *o)
{
    for (int axis = 0; axis < o->before.count; axis++) {
        int64_t before = o->before.values[axis], after = o->after.values[axis];
        tutti_sym parts[3];
        int count = 0;
        if (before > 0)
            parts[count++] = tutti_reverse(tutti_slice_axis(x, axis, 0, before), axis);
        parts[count++] = x;
        if (after > 0)
            parts[count++] = tutti_reverse(tutti_slice_axis(x, axis, -after, TUTTI_LAST), axis);
        x = count > 1 ? tutti_concatenate(count, parts, .axis = axis) : x;
    }
    return x;
}

/* Pad(x, pads), PadV2(x, pads, value), MirrorPad(x, pads). */
static void read_pad(tutti_graphdef_import *m)
{
    tutti_pad_options o = {.struct_size = sizeof o};
    const tutti_tensor *pads = tutti__graphdef_value(m, 1);
    bool mirror = strcmp(m->node->op, "MirrorPad") == 0;
    tutti_sym x = IN(0);
    const tutti_tensor *value = m->status == TUTTI_OK && strcmp(m->node->op, "PadV2") == 0
                                    ? tutti__graphdef_value(m, 2)
                                    : NULL;
    if (m->status != TUTTI_OK || tutti_tensor_count(pads) > 2 * TUTTI_MAX_RANK)
        return;
    o.before.count = o.after.count = (int)(tutti_tensor_count(pads) / 2);
    for (int i = 0; i < o.before.count; i++) {
        o.before.values[i] = tutti_tensor_get_int(pads, 2 * i);
        o.after.values[i] = tutti_tensor_get_int(pads, 2 * i + 1);
    }
    o.value = value ? tutti_tensor_get(value, 0) : 0;
    o.mode = mirror ? "reflect" : NULL;
    bool twice = mirror && strcmp(attr_string(m, "mode", ""), "SYMMETRIC") == 0;
    made(m, twice ? symmetric(x, &o) : tutti_pad_with(x, &o));
}

static void read_cast(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *to = tutti__graphdef_attr(m->node, "DstT");
    tutti_dtype dtype = to ? tutti__graphdef_dtype_of(to->type) : TUTTI_NO_DTYPE;
    tutti_sym x = IN(0);
    if (dtype == TUTTI_NO_DTYPE || dtype == TUTTI_STRING)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "converts to a type that is not known");
    if (m->status == TUTTI_OK)
        made(m, tutti_cast(x, dtype));
}

static void read_shape(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *to = tutti__graphdef_attr(m->node, "out_type");
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK)
        made(m, to && to->type == 9 ? tutti_shape(x) : tutti_cast(tutti_shape(x), TUTTI_I32));
}

static void read_fill(tutti_graphdef_import *m)
{
    tutti_sym value = IN(1), like = tutti__graphdef_like(m, 0);
    if (m->status == TUTTI_OK)
        made(m, tutti_broadcast_like(value, like));
}

static void read_broadcast(tutti_graphdef_import *m)
{
    tutti_sym x = IN(0), like = tutti__graphdef_like(m, 1);
    if (m->status == TUTTI_OK)
        made(m, tutti_broadcast_like(x, like));
}

/* The shape that two shapes give together. */
static void read_broadcast_args(tutti_graphdef_import *m)
{
    tutti_sym a = tutti__graphdef_like(m, 0), b = tutti__graphdef_like(m, 1), shape = IN(0);
    if (m->status == TUTTI_OK)
        made(m, tutti_cast(tutti_shape(tutti_logical_or(a, b)), tutti_sym_type(shape).dtype));
}

static void read_size(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *to = tutti__graphdef_attr(m->node, "out_type");
    tutti_dtype dtype = to && to->type == 9 ? TUTTI_I64 : TUTTI_I32;
    tutti_sym x = IN(0);
    if (m->status != TUTTI_OK)
        return;
    if (strcmp(m->node->op, "Rank") == 0)
        made(m, tutti_scalar(m->graph, TUTTI_I32, tutti_sym_type(x).rank));
    else
        made(m, tutti_cast((tutti_size)(x, 0, NULL), dtype));
}

static void read_range(tutti_graphdef_import *m)
{
    tutti_sym in[3];
    const tutti_tensor *known[3];
    bool all = true;
    for (int i = 0; i < 3; i++) {
        in[i] = IN(i);
        known[i] = m->status == TUTTI_OK ? tutti__graphdef_try_value(m, i) : NULL;
        all = all && known[i] && tutti_tensor_count(known[i]) == 1;
    }
    if (m->status == TUTTI_OK && all)
        made(m, tutti_range(m->graph, tutti_tensor_get(known[0], 0), tutti_tensor_get(known[1], 0),
                            tutti_tensor_get(known[2], 0), tutti_sym_type(in[0]).dtype));
    else if (m->status == TUTTI_OK)
        made(m, tutti_range_dynamic(in[0], in[1], in[2]));
}

static void read_reverse(tutti_graphdef_import *m)
{
    tutti_axes axes;
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK && tutti__graphdef_ints(m, 1, &axes))
        made(m, axes.count > 0 ? (tutti_reverse)(x, axes.count, axes.values) : x);
}

static void read_roll(tutti_graphdef_import *m)
{
    tutti_axes shifts, axes;
    tutti_sym x = IN(0);
    if (m->status != TUTTI_OK || !tutti__graphdef_ints(m, 1, &shifts) ||
        !tutti__graphdef_ints(m, 2, &axes))
        return;
    for (int i = 0; i < axes.count && i < shifts.count; i++)
        x = tutti_roll(x, shifts.values[i], (int)axes.values[i]);
    made(m, x);
}

/* Pieces of an open axis of which one, number `open`, is what the others leave: those behind it
 * are counted from the end. */
static void split_around(tutti_graphdef_import *m, tutti_sym x, int axis, const tutti_axes *sizes,
                         int open)
{
    int64_t before = 0, behind = 0;
    for (int i = open + 1; i < sizes->count; i++)
        behind += sizes->values[i];
    for (int i = 0; i < sizes->count; i++) {
        int64_t size = sizes->values[i], begin = i <= open ? before : -behind;
        behind -= i > open ? size : 0;
        int64_t end = i < open ? before + size : behind > 0 ? -behind : TUTTI_LAST;
        before += i < open ? size : 0;
        if (i > open && size == 0)
            begin = end = 0;
        tutti_sym piece = tutti_slice_axis(x, axis, begin, end);
        tutti__graphdef_give(m, i, &(tutti_graphdef_value){.sym = piece});
    }
}

/* The place of the only size of -1, which becomes what the others leave where the axis is known;
 * -1: all sizes are known now. */
static int open_piece(tutti_sym x, int64_t axis, tutti_axes *sizes)
{
    tutti_type type = tutti_sym_type(x);
    int open = -1, count = 0;
    int64_t sum = 0;
    for (int i = 0; i < sizes->count; i++) {
        bool is = sizes->values[i] == -1;
        open = is ? i : open;
        count += is;
        sum += is ? 0 : sizes->values[i];
    }
    axis += axis < 0 ? type.rank : 0;
    bool there = axis >= 0 && axis < type.rank;
    if (count != 1 || !there || (type.dims[axis] >= 0 && type.dims[axis] < sum))
        return -1;
    if (type.dims[axis] < 0)
        return open;
    sizes->values[open] = type.dims[axis] - sum;
    return -1;
}

/* Split has its axis first, SplitV sizes and axis last, Unpack the axis as an attribute. */
static void read_split(tutti_graphdef_import *m)
{
    bool equal = strcmp(m->node->op, "Split") == 0, sized = strcmp(m->node->op, "SplitV") == 0;
    tutti_sym x = IN(equal ? 1 : 0);
    tutti_axes axis = {.count = 1, .values = {attr_int(m, "axis", 0)}}, sizes = {0};
    int64_t count = attr_int(m, equal || sized ? "num_split" : "num", 1);
    if (m->status != TUTTI_OK ||
        ((equal || sized) && !tutti__graphdef_ints(m, sized ? 2 : 0, &axis)) ||
        (sized && !tutti__graphdef_ints(m, 1, &sizes)))
        return;
    int open = axis.count == 1 ? open_piece(x, axis.values[0], &sizes) : -1;
    if (axis.count != 1 || count < 1 || count > 4096 || (sized && sizes.count != count))
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "makes %lld pieces", (long long)count);
    else if (sized && open >= 0)
        split_around(m, x, (int)axis.values[0], &sizes, open);
    else if (sized)
        made(m, (tutti_split_sizes)(x, (int)axis.values[0], sizes.count, sizes.values));
    else
        made(m, equal ? tutti_split_into(x, (int)axis.values[0], (int)count)
                      : tutti_unstack(x, (int)axis.values[0], (int)count));
}

const tutti_graphdef_entry tutti__graphdef_shapes[] = {
    {"Split", read_split},
    {"SplitV", read_split},
    {"Unpack", read_split},
    {"Reshape", read_reshape},
    {"Squeeze", read_squeeze},
    {"ExpandDims", read_expand_dims},
    {"Transpose", read_transpose},
    {"Tile", read_tile},
    {"ConcatV2", read_join},
    {"Pack", read_join},
    {"Concat", read_join},
    {"AccumulateNV2", read_join},
    {"AddN", read_join},
    {"Pad", read_pad},
    {"PadV2", read_pad},
    {"MirrorPad", read_pad},
    {"Cast", read_cast},
    {"Shape", read_shape},
    {"Fill", read_fill},
    {"BroadcastTo", read_broadcast},
    {"Size", read_size},
    {"Rank", read_size},
    {"Range", read_range},
    {"ReverseV2", read_reverse},
    {"Roll", read_roll},
    {"BroadcastArgs", read_broadcast_args},
    {NULL, NULL},
};
