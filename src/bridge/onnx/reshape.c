/* reshape.c: other shapes for the same elements, and repeating them, to shapes that are given or
 * computed. */
#include "bridge/onnx.h"

/* Dimension 0 means "as it was" in ONNX unless allowzero is set. */
static void write_reshape(tutti_onnx_export *x)
{
    const int64_t *dims;
    bool zero = false;
    int rank = NODE_INTS(x, "dims", &dims);
    const char *y = ONNX(x, "Reshape", tutti__onnx_in(x, 0), tutti__onnx_ints(x, rank, dims));
    for (int i = 0; i < rank; i++)
        zero = zero || dims[i] == 0;
    if (zero)
        tutti__onnx_set_int(x, "allowzero", 1);
    tutti__onnx_out(x, 0, y);
}

static void write_reshape_like(tutti_onnx_export *x)
{
    const char *a = tutti__onnx_in(x, 0), *like = tutti__onnx_in(x, 1);
    tutti__onnx_out(x, 0, ONNX(x, "Reshape", a, ONNX(x, "Shape", like)));
    tutti__onnx_set_int(x, "allowzero", 1);
}

/* ONNX repeats both ways: 1 keeps a dimension. */
static void write_broadcast_to(tutti_onnx_export *x)
{
    const int64_t *dims;
    int64_t wanted[TUTTI_MAX_RANK];
    int rank = NODE_INTS(x, "dims", &dims);
    for (int i = 0; i < rank; i++)
        wanted[i] = dims[i] < 0 ? 1 : dims[i];
    tutti__onnx_out(x, 0,
                    ONNX(x, "Expand", tutti__onnx_in(x, 0), tutti__onnx_ints(x, rank, wanted)));
}

static void write_broadcast_like(tutti_onnx_export *x)
{
    const char *a = tutti__onnx_in(x, 0), *like = tutti__onnx_in(x, 1);
    tutti__onnx_out(x, 0, ONNX(x, "Expand", a, ONNX(x, "Shape", like)));
}

/* 0 is the dimension as it was. */
static void copy_dims(tutti_onnx_import *m, tutti_sym x, tutti_onnx_elements *shape)
{
    tutti_type type = tutti_sym_type(x);
    for (int i = 0; i < shape->count; i++) {
        tutti_onnx_element *e = &shape->items[i];
        if (!e->known || e->value != 0 || tutti__onnx_attr_int(m, "allowzero", 0))
            continue;
        if (i >= type.rank)
            tutti__onnx_read_fail(m, TUTTI_CORRUPT, "copies dimension %d, which is not there", i);
        else if (type.dims[i] >= 0)
            e->value = type.dims[i];
        else
            *e = (tutti_onnx_element){.sym = tutti_size(x, i)};
    }
}

/* Whether e is the size of axis `axis` of x. */
static bool is_size_of(const tutti_onnx_element *e, tutti_sym x, int axis)
{
    const tutti_node *node = e->known ? NULL : e->sym.node;
    const int64_t *axes;
    if (!node || !tutti__is(node, "size") ||
        tutti_attr_ints(node->attrs, node->attr_count, "axes", &axes) != 1)
        return false;
    tutti_edge of = node->inputs[0];
    int own = (int)(axes[0] < 0 ? axes[0] + tutti__edge_type(of)->rank : axes[0]);
    return tutti__onnx_same_dim(tutti__sym(of.node, of.index), own, x, axis);
}

/* -1 beside sizes of x's own axes follows from the other axes: [batch, -1] of [batch, 512, 1, 1] is
 * [batch, 512]. */
static void settle_open(tutti_sym x, tutti_onnx_elements *shape)
{
    tutti_type type = tutti_sym_type(x);
    int64_t mine = 1, theirs = 1;
    int open = -1;
    bool used[TUTTI_MAX_RANK] = {false};
    for (int i = 0; i < shape->count; i++) {
        const tutti_onnx_element *e = &shape->items[i];
        int axis = 0;
        if (e->known && e->value >= 0 && !tutti__mul_size(theirs, e->value, &theirs))
            return;
        if (e->known && e->value < 0 && open >= 0)
            return;
        if (e->known && e->value < 0)
            open = i;
        if (e->known)
            continue;
        while (axis < type.rank &&
               (used[axis] || type.dims[axis] != TUTTI_ANY || !is_size_of(e, x, axis)))
            axis++;
        if (axis == type.rank)
            return;
        used[axis] = true;
    }
    for (int i = 0; i < type.rank; i++)
        if ((type.dims[i] == TUTTI_ANY && !used[i]) ||
            (type.dims[i] != TUTTI_ANY && !tutti__mul_size(mine, type.dims[i], &mine)))
            return;
    if (open >= 0 && theirs > 0 && mine % theirs == 0)
        shape->items[open].value = mine / theirs;
}

/* -1 that could not be settled: the number of x's elements divided by the others'. */
static tutti_sym whole_shape(tutti_onnx_import *m, tutti_sym x, tutti_onnx_elements shape)
{
    tutti_sym rest = (tutti_size)(x, 0, NULL), others = tutti_scalar(m->graph, TUTTI_I64, 1);
    int open = -1;
    for (int i = 0; i < shape.count; i++) {
        const tutti_onnx_element *e = &shape.items[i];
        if (e->known && e->value < 0)
            open = i;
        else
            others = tutti_mul(
                others, e->known ? tutti_scalar(m->graph, TUTTI_I64, (double)e->value) : e->sym);
    }
    if (open >= 0)
        shape.items[open] = (tutti_onnx_element){
            .sym = tutti_cast(tutti_div(tutti_cast(rest, TUTTI_F64), tutti_cast(others, TUTTI_F64)),
                              TUTTI_I64)};
    shape.dtype = TUTTI_I64;
    return tutti__onnx_elements_sym(m, &shape);
}

static tutti_sym reshaped(tutti_onnx_import *m, tutti_sym x, tutti_onnx_elements *shape)
{
    int64_t dims[ONNX_ELEMENTS];
    int unknown = 0, open = 0;
    for (int i = 0; i < shape->count; i++)
        if (shape->items[i].known && shape->items[i].value < -1) {
            tutti__onnx_read_fail(m, TUTTI_CORRUPT, "size %lld cannot be",
                                  (long long)shape->items[i].value);
            return TUTTI_NO_SYM;
        }
    settle_open(x, shape);
    for (int i = 0; i < shape->count; i++) {
        open += shape->items[i].known && shape->items[i].value < 0;
        unknown += !shape->items[i].known;
        dims[i] = shape->items[i].known ? shape->items[i].value : -1;
    }
    if (unknown + open <= 1)
        return (tutti_reshape)(x, shape->count, dims);
    if (open > 1) {
        tutti__onnx_read_fail(m, TUTTI_CORRUPT, "more than one dimension is -1");
        return TUTTI_NO_SYM;
    }
    return tutti_reshape_like(
        x, (tutti_fill_dynamic)(whole_shape(m, x, *shape), TUTTI_BOOL, 0, shape->count, dims));
}

static void read_reshape(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    const tutti_onnx_known *shape = tutti__onnx_input(m, 1);
    const tutti_onnx_attr *attr = tutti__onnx_attr(m->node, "shape", ONNX_INTS);
    tutti_onnx_elements list = {.rank = 1, .dtype = TUTTI_I64};
    if (!x.node)
        return;
    for (size_t i = 0; attr && i < attr->ints.count && i < ONNX_ELEMENTS; i++)
        list.items[list.count++] =
            (tutti_onnx_element){.known = true, .value = attr->ints.items[i]};
    if (shape && tutti_sym_ok(shape->shape_of))
        tutti__onnx_made(m, 0, tutti_reshape_like(x, shape->shape_of));
    else if ((!attr && !tutti__onnx_read_elements(m, 1, &list)) || list.count > TUTTI_MAX_RANK)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                              "the number of its dimensions is not known, or above %d",
                              TUTTI_MAX_RANK);
    else {
        copy_dims(m, x, &list);
        if (m->status == TUTTI_OK)
            tutti__onnx_made(m, 0, reshaped(m, x, &list));
    }
}

/* Dimension i of the result: x's own, or where that is 1 the wanted one. */
static tutti_onnx_element expanded_dim(tutti_onnx_import *m, tutti_sym x, int axis,
                                       tutti_onnx_element wanted)
{
    int64_t own = axis >= 0 ? tutti_sym_type(x).dims[axis] : 1;
    if (own == 1 || (wanted.known && wanted.value == own))
        return wanted;
    if (own > 1 || own == 0)
        return (tutti_onnx_element){.known = true, .value = own};
    if (wanted.known && wanted.value == 1)
        return (tutti_onnx_element){.sym = tutti_size(x, axis)};
    if (wanted.known) /* x's is 1 or the same */
        return wanted;
    tutti_sym mine = tutti_size(x, axis), one = tutti_scalar(m->graph, TUTTI_I64, 1);
    return (tutti_onnx_element){.sym = tutti_where(tutti_equal(mine, one), wanted.sym, mine)};
}

static void read_expand(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    tutti_onnx_elements list, wanted = {.rank = 1, .dtype = TUTTI_I64};
    int64_t dims[TUTTI_MAX_RANK];
    int open = 0;
    if (!x.node)
        return;
    int own = tutti_sym_type(x).rank;
    if (!tutti__onnx_read_elements(m, 1, &list) || list.count > TUTTI_MAX_RANK) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                              "the number of its dimensions is not known, or above %d",
                              TUTTI_MAX_RANK);
        return;
    }
    wanted.count = own > list.count ? own : list.count;
    for (int i = 0; i < wanted.count; i++) {
        int at = i - (wanted.count - list.count), axis = i - (wanted.count - own);
        tutti_onnx_element one = {.known = true, .value = 1};
        one = at >= 0 ? list.items[at] : one;
        if (one.known && one.value == -1)
            one.value = 1;
        if (one.known && one.value < 0) {
            tutti__onnx_read_fail(m, TUTTI_CORRUPT, "size %lld cannot be", (long long)one.value);
            return;
        }
        wanted.items[i] = expanded_dim(m, x, axis, one);
        bool kept = !wanted.items[i].known && axis >= 0 && is_size_of(&wanted.items[i], x, axis);
        dims[i] = wanted.items[i].known ? wanted.items[i].value : -1;
        open += !wanted.items[i].known && !kept;
    }
    if (open == 0)
        tutti__onnx_made(m, 0, (tutti_broadcast_to)(x, wanted.count, dims));
    else
        tutti__onnx_made(
            m, 0,
            tutti_broadcast_like(x, (tutti_fill_dynamic)(tutti__onnx_elements_sym(m, &wanted),
                                                         TUTTI_BOOL, 0, wanted.count, dims)));
}

const tutti_onnx_op tutti_onnx_reshape = {
    .op = "reshape",
    .type = "Reshape",
    .write = write_reshape,
    .read = read_reshape,
};

const tutti_onnx_op tutti_onnx_reshape_like = {
    .op = "reshape_like",
    .write = write_reshape_like,
};

const tutti_onnx_op tutti_onnx_broadcast_to = {
    .op = "broadcast_to",
    .type = "Expand",
    .write = write_broadcast_to,
    .read = read_expand,
};

const tutti_onnx_op tutti_onnx_broadcast_like = {
    .op = "broadcast_like",
    .write = write_broadcast_like,
};
