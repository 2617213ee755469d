/* graphdef_shapes.c: TensorFlow's operators that give the same elements another shape or order, or
 * some of them. */
#include "bridge/graphdef_rules.h"

#include <string.h>

/* A shape that is computed stands for itself by what is filled with it. */
static void read_reshape(tutti_graphdef_import *m)
{
    tutti_axes dims;
    tutti_sym x = IN(0), shape = IN(1);
    if (m->status != TUTTI_OK)
        return;
    if (tutti__is(shape.node, "constant")) {
        if (tutti__graphdef_ints(m, 1, &dims))
            made(m, (tutti_reshape)(x, dims.count, dims.values));
        return;
    }
    tutti_type type = tutti_sym_type(shape);
    if (type.rank != 1 || type.dims[0] < 0 || type.dims[0] > TUTTI_MAX_RANK) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "the number of its dimensions is not known");
        return;
    }
    /* -1 is what the others leave: size(x) / -product */
    shape = type.dtype == TUTTI_I64 ? shape : tutti_cast(shape, TUTTI_I64);
    tutti_sym size = tutti_cast((tutti_size)(x, 0, NULL), TUTTI_F64);
    tutti_sym product = tutti_cast(tutti_prod(shape), TUTTI_F64);
    tutti_sym open = tutti_cast(tutti_neg(tutti_div(size, product)), TUTTI_I64);
    tutti_sym below = tutti_less(shape, tutti_scalar_like(shape, 0));
    tutti_sym whole = tutti_where(below, open, shape);
    made(m, tutti_reshape_like(x, (tutti_fill_dynamic)(whole, TUTTI_BOOL, 0, 0, NULL)));
}

static void read_squeeze(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *axes = tutti__graphdef_attr(m->node, "squeeze_dims");
    tutti_sym x = IN(0);
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

static void read_tile(tutti_graphdef_import *m)
{
    tutti_axes times;
    tutti_sym x = IN(0);
    if (m->status == TUTTI_OK && tutti__graphdef_ints(m, 1, &times))
        made(m, (tutti_tile)(x, times.count, times.values));
}

/* ConcatV2 has its axis last; Pack as an attribute; AddN adds. */
static void read_join(tutti_graphdef_import *m)
{
    tutti_sym parts[64];
    tutti_axes axis = {.count = 1};
    bool joins = strcmp(m->node->op, "ConcatV2") == 0;
    int count = tutti__graphdef_inputs(m->node) - joins;
    if (count < 1 || count > 64) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "has %d inputs", count);
        return;
    }
    for (int i = 0; i < count; i++)
        parts[i] = IN(i);
    if (m->status != TUTTI_OK || (joins && !tutti__graphdef_ints(m, count, &axis)))
        return;
    if (joins) {
        made(m, (tutti_concat)((int)axis.values[0], count, parts));
    } else if (strcmp(m->node->op, "Pack") == 0) {
        made(m, (tutti_stack)((int)attr_int(m, "axis", 0), count, parts));
    } else {
        for (int i = 1; i < count; i++)
            parts[0] = tutti_add(parts[0], parts[i]);
        made(m, parts[0]);
    }
}

static void read_pad(tutti_graphdef_import *m)
{
    tutti_pad_options o = {.struct_size = sizeof o};
    const tutti_tensor *pads = tutti__graphdef_value(m, 1);
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
    made(m, (tutti_pad)(x, &o));
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

static void read_gather(tutti_graphdef_import *m)
{
    tutti_axes axis = {.count = 1};
    tutti_sym x = IN(0), at = IN(1);
    if (m->status == TUTTI_OK && strcmp(m->node->op, "GatherV2") == 0 &&
        !tutti__graphdef_ints(m, 2, &axis))
        return;
    if (m->status == TUTTI_OK)
        made(m, tutti_gather(x, at, (int)axis.values[0]));
}

/* x[begin:end:step] with masks: bit i of begin_mask and end_mask leaves an end open, of
 * shrink_axis_mask takes one element and drops the axis. */
static void read_strided_slice(tutti_graphdef_import *m)
{
    tutti_axes begin, end, step, drop = {0};
    tutti_slice_options o = {.struct_size = sizeof o};
    tutti_sym x = IN(0);
    if (attr_int(m, "ellipsis_mask", 0) || attr_int(m, "new_axis_mask", 0))
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "ellipsis and new axes are not supported");
    if (m->status != TUTTI_OK || !tutti__graphdef_ints(m, 1, &begin) ||
        !tutti__graphdef_ints(m, 2, &end) || !tutti__graphdef_ints(m, 3, &step))
        return;
    o.begin.count = o.end.count = o.step.count = begin.count;
    for (int i = 0; i < begin.count && i < end.count && i < step.count; i++) {
        bool shrinks = attr_int(m, "shrink_axis_mask", 0) >> i & 1;
        int64_t from = begin.values[i];
        o.begin.values[i] = attr_int(m, "begin_mask", 0) >> i & 1 ? TUTTI_FIRST : from;
        o.end.values[i] = attr_int(m, "end_mask", 0) >> i & 1 ? TUTTI_LAST : end.values[i];
        o.step.values[i] = step.values[i];
        if (!shrinks)
            continue;
        o.begin.values[i] = from;
        o.end.values[i] = from == -1 ? TUTTI_LAST : from + 1;
        drop.values[drop.count++] = i;
    }
    tutti_sym y = (tutti_slice)(x, &o);
    made(m, drop.count > 0 ? (tutti_squeeze)(y, drop.count, drop.values) : y);
}

static void read_fill(tutti_graphdef_import *m)
{
    tutti_axes dims;
    tutti_sym value = IN(1);
    if (m->status == TUTTI_OK && tutti__graphdef_ints(m, 0, &dims))
        made(m, (tutti_broadcast_to)(value, dims.count, dims.values));
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
    if (axis.count != 1 || count < 1 || count > 4096 || (sized && sizes.count != count))
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "makes %lld pieces", (long long)count);
    else if (sized)
        made(m, (tutti_split_sizes)(x, (int)axis.values[0], sizes.count, sizes.values));
    else
        made(m, equal ? tutti_split_into(x, (int)axis.values[0], (int)count)
                      : tutti_unstack(x, (int)axis.values[0], (int)count));
}

const tutti_graphdef_entry tutti__graphdef_shapes[] = {
    {"Split", read_split},         {"SplitV", read_split},
    {"Unpack", read_split},        {"Reshape", read_reshape},
    {"Squeeze", read_squeeze},     {"ExpandDims", read_expand_dims},
    {"Transpose", read_transpose}, {"Tile", read_tile},
    {"ConcatV2", read_join},       {"Pack", read_join},
    {"AddN", read_join},           {"Pad", read_pad},
    {"PadV2", read_pad},           {"Cast", read_cast},
    {"Shape", read_shape},         {"Gather", read_gather},
    {"GatherV2", read_gather},     {"StridedSlice", read_strided_slice},
    {"Fill", read_fill},           {NULL, NULL},
};
