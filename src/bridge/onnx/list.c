/* list.c: lists of tensors whose length is known only when they run; see list.h. */
#include "bridge/onnx/list.h"

#include <string.h>

#define MOST 256 /* tensors of a known list that becomes such a one */

/* ---- forms ---- */

/* x under the shape `dims`, i64 [rank], of which `known` says what is known already. */
static tutti_sym shaped(tutti_sym x, tutti_sym dims, int rank, const int64_t *known)
{
    if (rank == 0)
        return tutti_reshape(x);
    return tutti_reshape_like(x, (tutti_fill_dynamic)(dims, TUTTI_BOOL, 0, rank, known));
}

/* The same value, of which the first dimension is not known: it differs from round to round. */
static tutti_sym opened(tutti_sym x)
{
    tutti_type type = tutti_sym_ok(x) ? tutti_sym_type(x) : (tutti_type){0};
    if (type.rank == 0 || type.dims[0] == TUTTI_ANY)
        return x;
    type.dims[0] = TUTTI_ANY;
    return shaped(x, tutti_shape(x), type.rank, type.dims);
}

bool tutti__onnx_is_bare(const tutti_onnx_pack *pack)
{
    return pack->list && pack->of.dtype == TUTTI_NO_DTYPE;
}

bool tutti__onnx_widen(tutti_type *of, const tutti_type *other)
{
    if (of->dtype != other->dtype || of->rank != other->rank)
        return false;
    for (int i = 0; i < of->rank; i++)
        of->dims[i] = of->dims[i] == other->dims[i] ? of->dims[i] : TUTTI_ANY;
    return true;
}

/* The elements of x in a row, and its shape as the row of a table. */
static tutti_onnx_pack single(tutti_sym x)
{
    return (tutti_onnx_pack){.list = true,
                             .sym = tutti_reshape(x, -1),
                             .shapes = tutti_expand_dims(tutti_shape(x), 0),
                             .of = tutti_sym_ok(x) ? tutti_sym_type(x) : (tutti_type){0}};
}

tutti_onnx_pack tutti__onnx_empty_list(tutti_graph *graph, tutti_type of)
{
    return (tutti_onnx_pack){.list = true,
                             .sym = opened(tutti_fill(graph, of.dtype, 0, 0)),
                             .shapes = opened(tutti_fill(graph, TUTTI_I64, 0, 0, of.rank)),
                             .of = of};
}

tutti_onnx_pack tutti__onnx_open_list(const tutti_onnx_pack *list)
{
    tutti_onnx_pack open = *list;
    open.sym = opened(list->sym);
    open.shapes = opened(list->shapes);
    return open;
}

static tutti_onnx_pack pack_items(tutti_onnx_import *m, const tutti_onnx_known *list)
{
    tutti_sym parts[MOST], shapes[MOST];
    tutti_onnx_pack pack = {.list = true};
    if (list->item_count > MOST)
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "a list has more than %d tensors", MOST);
    for (size_t i = 0; m->status == TUTTI_OK && i < list->item_count; i++) {
        tutti_onnx_pack one = single(tutti__onnx_symbol(m, list->items[i]));
        pack.of = i == 0 ? one.of : pack.of;
        if (m->status == TUTTI_OK && !tutti__onnx_widen(&pack.of, &one.of))
            tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                                  "the tensors of a list differ in their ranks or element types");
        parts[i] = one.sym;
        shapes[i] = one.shapes;
    }
    if (m->status == TUTTI_OK && list->item_count > 0) {
        pack.sym = tutti_concatenate((int)list->item_count, parts);
        pack.shapes = tutti_concatenate((int)list->item_count, shapes);
    }
    return pack;
}

tutti_onnx_pack tutti__onnx_packed(tutti_onnx_import *m, tutti_onnx_known *known)
{
    if (known->sequence && !known->shapes.node)
        return pack_items(m, known);
    if (known->sequence)
        return (tutti_onnx_pack){
            .list = true, .sym = known->plain, .shapes = known->shapes, .of = known->of};
    tutti_sym sym = tutti__onnx_symbol(m, known);
    bool handle = m->status == TUTTI_OK && tutti_sym_type(sym).handle;
    return (tutti_onnx_pack){.sym = handle ? tutti_read(sym) : sym};
}

tutti_onnx_known tutti__onnx_unpacked(const tutti_onnx_pack *pack)
{
    return (tutti_onnx_known){.name = "",
                              .sequence = pack->list,
                              .plain = pack->sym,
                              .shapes = pack->shapes,
                              .of = pack->of};
}

int tutti__onnx_lay(int count, const tutti_onnx_pack *packs, tutti_sym *ret)
{
    int made = 0;
    for (int i = 0; i < count; i++) {
        if (!tutti__onnx_is_bare(&packs[i]))
            ret[made++] = packs[i].sym;
        if (packs[i].list && !tutti__onnx_is_bare(&packs[i]))
            ret[made++] = packs[i].shapes;
    }
    return made;
}

int tutti__onnx_lift(int count, const tutti_onnx_pack *like, const tutti_sym *syms,
                     tutti_onnx_pack *ret)
{
    int taken = 0;
    for (int i = 0; i < count; i++) {
        ret[i] = like[i];
        if (!tutti__onnx_is_bare(&like[i]))
            ret[i].sym = syms[taken++];
        if (like[i].list && !tutti__onnx_is_bare(&like[i]))
            ret[i].shapes = syms[taken++];
    }
    return taken;
}

/* ---- places ---- */

static tutti_sym number(tutti_sym beside, int64_t value)
{
    return tutti_scalar(tutti_sym_graph(beside), TUTTI_I64, (double)value);
}

tutti_sym tutti__onnx_list_length(const tutti_onnx_pack *list)
{
    return tutti_size(list->shapes, 0);
}

/* From the start, where it was counted from the end. */
static tutti_sym from_start(const tutti_onnx_pack *list, tutti_sym place)
{
    place = tutti_reshape(tutti_cast(place, TUTTI_I64));
    return tutti_where(tutti_less(place, number(place, 0)),
                       tutti_add(place, tutti__onnx_list_length(list)), place);
}

/* x[from:to] along axis 0. */
static tutti_sym stretch(tutti_sym x, tutti_sym from, tutti_sym to)
{
    return tutti_gather(x, tutti_range_dynamic(from, to, number(x, 1)), 0);
}

/* Elements before a place: sum of prod(shapes[i]) over i < place. */
static tutti_sym elements_before(const tutti_onnx_pack *list, tutti_sym place)
{
    tutti_sym before = stretch(list->shapes, number(place, 0), place);
    return tutti_sum(tutti_prod(before, .axes = TUTTI_AXES(1)));
}

tutti_sym tutti__onnx_list_at(const tutti_onnx_pack *list, tutti_sym place)
{
    place = from_start(list, place);
    tutti_sym shape = tutti_gather(list->shapes, place, 0), from = elements_before(list, place);
    tutti_sym elements = stretch(list->sym, from, tutti_add(from, tutti_prod(shape)));
    return shaped(elements, shape, list->of.rank, list->of.dims);
}

/* ---- lists that change ---- */

static tutti_onnx_pack joined(const tutti_onnx_pack *a, const tutti_onnx_pack *b)
{
    tutti_onnx_pack both = *a;
    tutti__onnx_widen(&both.of, &b->of);
    both.sym = tutti_concatenate(TUTTI_SYMS(a->sym, b->sym));
    both.shapes = tutti_concatenate(TUTTI_SYMS(a->shapes, b->shapes));
    return both;
}

/* Tensors [from, to) of a list. */
static tutti_onnx_pack part(const tutti_onnx_pack *list, tutti_sym from, tutti_sym to)
{
    tutti_onnx_pack some = *list;
    some.sym = stretch(list->sym, elements_before(list, from), elements_before(list, to));
    some.shapes = stretch(list->shapes, from, to);
    return some;
}

tutti_onnx_pack tutti__onnx_list_with(const tutti_onnx_pack *list, tutti_sym x, tutti_sym place)
{
    tutti_onnx_pack one = single(x);
    if (!place.node)
        return joined(list, &one);
    place = from_start(list, place);
    tutti_onnx_pack before = part(list, number(x, 0), place);
    tutti_onnx_pack behind = part(list, place, tutti__onnx_list_length(list));
    before = joined(&before, &one);
    return joined(&before, &behind);
}

tutti_onnx_pack tutti__onnx_list_without(const tutti_onnx_pack *list, tutti_sym place)
{
    tutti_sym length = tutti__onnx_list_length(list);
    place = place.node ? from_start(list, place) : tutti_add(length, -1);
    tutti_onnx_pack before = part(list, number(place, 0), place);
    tutti_onnx_pack behind = part(list, tutti_add(place, 1), length);
    return joined(&before, &behind);
}

/* ---- one tensor of all ---- */

/* The largest of each dimension, i64 [rank]. Tensors of fewer elements than that say would not fill
 * what is made of it, so that a difference shows. */
static tutti_sym largest(const tutti_onnx_pack *list)
{
    tutti_sym none = tutti_fill(tutti_sym_graph(list->shapes), TUTTI_I64, 0, 1, list->of.rank);
    return tutti_max(tutti_concatenate(TUTTI_SYMS(none, list->shapes)), .axes = TUTTI_AXES(0));
}

/* [count, …]. */
static tutti_sym stacked(const tutti_onnx_pack *list)
{
    int64_t dims[TUTTI_MAX_RANK] = {TUTTI_ANY};
    int rank = list->of.rank;
    memcpy(dims + 1, list->of.dims, (size_t)(rank < TUTTI_MAX_RANK ? rank : 0) * sizeof *dims);
    tutti_sym count = tutti_reshape(tutti__onnx_list_length(list), 1);
    return shaped(list->sym,
                  rank == 0 ? count : tutti_concatenate(TUTTI_SYMS(count, largest(list))), rank + 1,
                  dims);
}

/* Along an axis the sizes add up: [d0, …, sum of dk, …]. Along the first one the elements stand in
 * their order already; others are stacked, [d0, …, count, dk, …], and so are of equal size. */
static tutti_sym concatenated(const tutti_onnx_pack *list, int axis)
{
    int64_t dims[TUTTI_MAX_RANK], order[TUTTI_MAX_RANK];
    int rank = list->of.rank;
    tutti_sym sizes = tutti_slice_axis(list->shapes, 1, axis, axis + 1);
    tutti_sym most = largest(list), parts[3];
    int count = 0;
    memcpy(dims, list->of.dims, sizeof dims);
    dims[axis] = TUTTI_ANY;
    if (axis > 0)
        parts[count++] = tutti_slice_axis(most, 0, 0, axis);
    parts[count++] = tutti_sum(sizes, .axes = TUTTI_AXES(0));
    if (axis + 1 < rank)
        parts[count++] = tutti_slice_axis(most, 0, axis + 1, rank);
    tutti_sym whole = tutti_concatenate(count, parts), x = list->sym;
    for (int i = 0; i <= rank; i++)
        order[i] = i < axis ? i + 1 : i == axis ? 0 : i;
    if (axis > 0)
        x = (tutti_transpose)(stacked(list), rank + 1, order);
    return shaped(x, whole, rank, dims);
}

tutti_sym tutti__onnx_list_joined(const tutti_onnx_pack *list, int axis, bool stack)
{
    int64_t order[TUTTI_MAX_RANK];
    int rank = list->of.rank;
    axis += axis < 0 ? rank + stack : 0;
    if (axis < 0 || axis >= rank + stack || rank + (stack || axis > 0) > TUTTI_MAX_RANK)
        return TUTTI_NO_SYM;
    if (!stack)
        return concatenated(list, axis);
    for (int i = 0; i <= rank; i++)
        order[i] = i < axis ? i + 1 : i == axis ? 0 : i;
    return axis == 0 ? stacked(list) : (tutti_transpose)(stacked(list), rank + 1, order);
}

tutti_onnx_pack tutti__onnx_list_slices(tutti_sym x, int axis, bool keep)
{
    int64_t order[TUTTI_MAX_RANK];
    tutti_type type = tutti_sym_type(x), of = type;
    tutti_graph *graph = tutti_sym_graph(x);
    for (int i = 0; i < type.rank; i++)
        order[i] = i == 0 ? axis : i <= axis ? i - 1 : i;
    tutti_sym front = axis == 0 ? x : (tutti_transpose)(x, type.rank, order);
    tutti_sym shape = tutti_shape(x);
    tutti_sym row = tutti_concatenate(TUTTI_SYMS(tutti_slice_axis(shape, 0, 0, axis),
                                                 tutti_fill(graph, TUTTI_I64, 1, keep),
                                                 tutti_slice_axis(shape, 0, axis + 1, type.rank)));
    of.dims[axis] = 1;
    if (!keep) {
        of.rank--;
        memmove(of.dims + axis, of.dims + axis + 1, (size_t)(of.rank - axis) * sizeof *of.dims);
    }
    tutti_sym size = tutti_concatenate(
        TUTTI_SYMS(tutti_slice_axis(shape, 0, axis, axis + 1), tutti_ints(graph, of.rank)));
    tutti_sym table = (tutti_fill_dynamic)(size, TUTTI_BOOL, 0, 2, (int64_t[]){TUTTI_ANY, of.rank});
    return (tutti_onnx_pack){.list = true,
                             .sym = tutti_reshape(front, -1),
                             .shapes = tutti_broadcast_like(row, table),
                             .of = of};
}
