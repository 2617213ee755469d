/* list.c: TensorFlow's lists of tensors: TensorList operators, and TensorArray, whose
 * flow is the list here. What a list is stands at tutti_graphdef_value. */
#include "bridge/graphdef/rules.h"

#include <string.h>

static tutti_sym number(tutti_graphdef_import *m, int64_t value)
{
    return tutti_scalar(m->graph, TUTTI_I64, (double)value);
}

static tutti_sym as_place(tutti_sym x)
{
    return tutti_reshape(tutti_cast(x, TUTTI_I64));
}

/* The list that is input i. */
static bool list_in(tutti_graphdef_import *m, int i, tutti_graphdef_value *ret)
{
    const tutti_graphdef_value *value = tutti__graphdef_input(m, i);
    if (!value)
        return false;
    if (!value->list)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "input %d is no list of tensors", i);
    if (m->status == TUTTI_OK)
        *ret = *value;
    return m->status == TUTTI_OK;
}

static tutti_sym length_of(tutti_graphdef_import *m, const tutti_graphdef_value *list)
{
    if (list->items)
        return number(m, list->item_count);
    return list->sym.node ? tutti_size(list->sym, 0) : list->count;
}

/* ---- making lists ---- */

static void give_reserved(tutti_graphdef_import *m, tutti_graphdef_value list, int count_input)
{
    const tutti_tensor *known = count_input >= 0 ? tutti__graphdef_try_value(m, count_input) : NULL;
    int64_t count = count_input < 0                           ? 0
                    : known && tutti_tensor_count(known) == 1 ? tutti_tensor_get_int(known, 0)
                                                              : -1;
    list.list = true;
    if (count >= 0 && count <= GRAPHDEF_ITEMS) {
        list.items = tutti__graphdef_take(m, (size_t)count + 1, sizeof *list.items);
        list.item_count = (int)count;
    } else if (m->status == TUTTI_OK) {
        tutti_sym x = IN(count_input);
        list.count = m->status == TUTTI_OK ? as_place(x) : x;
    }
    tutti__graphdef_give(m, 0, &list);
}

/* The type that attribute `dtype` and the shape that input i give. */
static tutti_graphdef_value reserved_type(tutti_graphdef_import *m, int shape_input)
{
    tutti_graphdef_value list = {.list = true};
    const tutti_graphdef_attr *dtype = tutti__graphdef_attr(m->node, "element_dtype");
    const tutti_graphdef_value *shape = tutti__graphdef_input(m, shape_input);
    tutti_axes dims;
    list.of.dtype = dtype ? tutti__graphdef_dtype_of(dtype->type) : TUTTI_NO_DTYPE;
    if (!shape || shape->list || tutti_sym_type(shape->sym).rank != 1 ||
        !tutti__graphdef_numbers(m, shape->sym, &dims))
        return list;
    list.ranked = true;
    list.of.rank = dims.count;
    for (int i = 0; i < dims.count; i++)
        list.of.dims[i] = dims.values[i] < 0 ? TUTTI_ANY : dims.values[i];
    return list;
}

/* TensorListReserve(shape, count), EmptyTensorList(shape, at most). */
static void read_reserve(tutti_graphdef_import *m)
{
    bool empty = strcmp(m->node->op, "EmptyTensorList") == 0;
    tutti_graphdef_value list = reserved_type(m, 0);
    list.grows = empty;
    if (m->status == TUTTI_OK)
        give_reserved(m, list, empty ? -1 : 1);
}

/* TensorArrayV3(count): handle and flow, both the list. */
static void read_array(tutti_graphdef_import *m)
{
    const tutti_graphdef_attr *dtype = tutti__graphdef_attr(m->node, "dtype");
    const tutti_graphdef_attr *shape = tutti__graphdef_attr(m->node, "element_shape");
    tutti_graphdef_value list = {.list = true, .grows = attr_int(m, "dynamic_size", 0) != 0};
    if (shape && shape->has_shape && shape->ranked) {
        list.ranked = true;
        list.of = shape->shape;
    }
    list.of.dtype = dtype ? tutti__graphdef_dtype_of(dtype->type) : TUTTI_NO_DTYPE;
    give_reserved(m, list, 0);
    if (m->status == TUTTI_OK)
        tutti__graphdef_give(m, 1, &m->here->outputs[0]);
}

static void give_stacked(tutti_graphdef_import *m, tutti_sym x, bool grows)
{
    tutti_type type = tutti_sym_type(x);
    tutti_graphdef_value list = {.list = true, .sym = x, .ranked = true, .grows = grows};
    list.of.dtype = type.dtype;
    list.of.rank = type.rank > 0 ? type.rank - 1 : 0;
    for (int i = 0; i < list.of.rank; i++)
        list.of.dims[i] = type.dims[i + 1];
    if (type.rank == 0)
        tutti__graphdef_fail(m, TUTTI_INVALID, "makes a list of a scalar");
    tutti__graphdef_give(m, 0, &list);
}

/* 0, 1, 2, … */
static bool counts_up(tutti_graphdef_import *m, int i)
{
    tutti_sym places = IN(i);
    const tutti_tensor *known = tutti__graphdef_try_value(m, i);
    bool up = known || (m->status == TUTTI_OK && tutti__is(places.node, "range_dynamic"));
    for (int64_t k = 0; known && up && k < tutti_tensor_count(known); k++)
        up = tutti_tensor_get_int(known, k) == k;
    if (!up)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "its places are not 0, 1, 2, …");
    return up && m->status == TUTTI_OK;
}

/* TensorListFromTensor(x); TensorArrayScatterV3(handle, places, x, flow) of all places. */
static void read_from_tensor(tutti_graphdef_import *m)
{
    bool array = strcmp(m->node->op, "TensorArrayScatterV3") == 0;
    tutti_sym x = IN(array ? 2 : 0);
    if (m->status == TUTTI_OK && (!array || counts_up(m, 1)))
        give_stacked(m, x, false);
}

/* ---- one tensor of a list ---- */

static bool place_in(tutti_graphdef_import *m, int i, int64_t *ret_known, tutti_sym *ret)
{
    const tutti_tensor *known = tutti__graphdef_try_value(m, i);
    tutti_sym x = IN(i);
    *ret_known = known && tutti_tensor_count(known) == 1 ? tutti_tensor_get_int(known, 0) : -1;
    if (m->status == TUTTI_OK)
        *ret = as_place(x);
    return m->status == TUTTI_OK;
}

/* TensorListGetItem(list, place, shape); TensorArrayReadV3(handle, place, flow). */
static void read_get(tutti_graphdef_import *m)
{
    tutti_graphdef_value list;
    tutti_sym place;
    int64_t at;
    if (!list_in(m, strcmp(m->node->op, "TensorArrayReadV3") == 0 ? 2 : 0, &list) ||
        !place_in(m, 1, &at, &place))
        return;
    if (list.items && at >= 0 && at < list.item_count && list.items[at].node) {
        made(m, list.items[at]);
        return;
    }
    if (!tutti__graphdef_resolve(m, &list))
        return;
    if (!list.sym.node)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED,
                             "reads from a list of tensors of which nothing is known");
    else
        made(m, tutti_gather(list.sym, place, 0));
}

/* y[i] = x where i is the place, else list[i]: [count, …]. */
static tutti_sym written(tutti_graphdef_import *m, const tutti_graphdef_value *list,
                         tutti_sym place, tutti_sym x)
{
    tutti_type type = tutti_sym_type(x);
    int64_t dims[TUTTI_MAX_RANK] = {-1};
    tutti_sym one = number(m, 1), count = length_of(m, list);
    tutti_sym most = list->grows ? tutti_maximum(count, tutti_add(place, one)) : count;
    tutti_sym before = list->sym.node ? list->sym : tutti__graphdef_zeros(x, most);
    if (list->sym.node && list->grows)
        before =
            tutti_concatenate(TUTTI_SYMS(before, tutti__graphdef_zeros(x, tutti_sub(most, count))));
    tutti_sym hit =
        tutti_equal(tutti_range_dynamic(number(m, 0), tutti_size(before, 0), one), place);
    for (int i = 1; i <= type.rank && i < TUTTI_MAX_RANK; i++)
        dims[i] = 1;
    return tutti_where((tutti_reshape)(hit, type.rank + 1, dims), tutti_expand_dims(x, 0), before);
}

static bool write_item(tutti_graphdef_import *m, tutti_graphdef_value *list, int64_t at,
                       tutti_sym x)
{
    int count = list->item_count;
    if (!list->items || at < 0 || at >= GRAPHDEF_ITEMS || (at >= count && !list->grows))
        return false;
    int longer = at >= count ? (int)at + 1 : count;
    tutti_sym *items = tutti__graphdef_take(m, (size_t)longer, sizeof *items);
    if (items && count > 0)
        memcpy(items, list->items, (size_t)count * sizeof *items);
    if (items)
        items[at] = x;
    list->items = items;
    list->item_count = longer;
    return true;
}

static void write_at(tutti_graphdef_import *m, tutti_graphdef_value *list, int64_t at,
                     tutti_sym place, tutti_sym x)
{
    tutti_type type = tutti_sym_type(x);
    if (type.rank >= TUTTI_MAX_RANK) {
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED, "lists hold tensors of at most %d dimensions",
                             TUTTI_MAX_RANK - 1);
        return;
    }
    if (!write_item(m, list, at, x) && tutti__graphdef_resolve(m, list)) {
        list->sym = written(m, list, place, x);
        list->count = TUTTI_NO_SYM;
        list->of = type;
        list->ranked = true;
    }
    tutti__graphdef_give(m, 0, list);
}

/* TensorListSetItem(list, place, x); TensorArrayWriteV3(handle, place, x, flow). */
static void read_set(tutti_graphdef_import *m)
{
    tutti_graphdef_value list;
    tutti_sym place, x = IN(2);
    int64_t at;
    if (!list_in(m, strcmp(m->node->op, "TensorArrayWriteV3") == 0 ? 3 : 0, &list) ||
        !place_in(m, 1, &at, &place))
        return;
    list.grows = list.grows || attr_int(m, "resize_if_index_out_of_bounds", 0);
    write_at(m, &list, at, place, x);
}

static void read_push_back(tutti_graphdef_import *m)
{
    tutti_graphdef_value list;
    tutti_sym x = IN(1);
    if (m->status != TUTTI_OK || !list_in(m, 0, &list))
        return;
    list.grows = true;
    int64_t at = list.items ? list.item_count : -1;
    write_at(m, &list, at, length_of(m, &list), x);
}

/* ---- all tensors of a list ---- */

/* TensorListStack(list, shape), TensorListGather(list, places, shape), TensorArrayGatherV3(handle,
 * places, flow): all tensors, or those at the places. */
static void read_stack(tutti_graphdef_import *m)
{
    tutti_graphdef_value list;
    bool array = strcmp(m->node->op, "TensorArrayGatherV3") == 0;
    bool some = array || strcmp(m->node->op, "TensorListGather") == 0;
    if (!list_in(m, array ? 2 : 0, &list) || !tutti__graphdef_resolve(m, &list))
        return;
    tutti_sym places = some ? IN(1) : TUTTI_NO_SYM;
    if (!list.sym.node)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED,
                             "stacks a list of tensors of which nothing is known");
    if (m->status == TUTTI_OK)
        made(m, some ? tutti_gather(list.sym, places, 0) : list.sym);
}

/* Along their first dimension; all are of one size. */
static void read_concat(tutti_graphdef_import *m)
{
    tutti_graphdef_value list;
    bool array = strcmp(m->node->op, "TensorArrayConcatV3") == 0;
    int64_t dims[TUTTI_MAX_RANK] = {-1};
    if (!list_in(m, array ? 2 : 0, &list) || !tutti__graphdef_resolve(m, &list))
        return;
    tutti_type type = list.sym.node ? tutti_sym_type(list.sym) : (tutti_type){0};
    int open = 0;
    for (int i = 2; i < type.rank; i++)
        open += (dims[i - 1] = type.dims[i]) < 0;
    if (type.rank < 2 || open > 0)
        tutti__graphdef_fail(m, TUTTI_UNSUPPORTED,
                             "joins tensors whose inner dimensions are not known");
    else
        made(m, (tutti_reshape)(list.sym, type.rank - 1, dims));
}

/* TensorListLength(list); TensorArraySizeV3(handle, flow). */
static void read_length(tutti_graphdef_import *m)
{
    tutti_graphdef_value list;
    if (list_in(m, strcmp(m->node->op, "TensorArraySizeV3") == 0 ? 1 : 0, &list))
        made(m, tutti_cast(length_of(m, &list), TUTTI_I32));
}

/* TensorListResize(list, count): longer lists end in tensors that were never written. */
static void read_resize(tutti_graphdef_import *m)
{
    tutti_graphdef_value list;
    tutti_sym place;
    int64_t count;
    if (!list_in(m, 0, &list) || !place_in(m, 1, &count, &place))
        return;
    if (list.items && count >= list.item_count && count <= GRAPHDEF_ITEMS) {
        tutti_sym *items = tutti__graphdef_take(m, (size_t)count + 1, sizeof *items);
        if (items && list.item_count > 0)
            memcpy(items, list.items, (size_t)list.item_count * sizeof *items);
        list.items = items;
        list.item_count = (int)count;
    } else {
        list.grows = true; /* it grows where something is written */
    }
    tutti__graphdef_give(m, 0, &list);
}

const tutti_graphdef_entry tutti__graphdef_lists[] = {
    {"TensorListReserve", read_reserve},
    {"EmptyTensorList", read_reserve},
    {"TensorListFromTensor", read_from_tensor},
    {"TensorListGetItem", read_get},
    {"TensorListSetItem", read_set},
    {"TensorListPushBack", read_push_back},
    {"TensorListStack", read_stack},
    {"TensorListGather", read_stack},
    {"TensorListConcat", read_concat},
    {"TensorListConcatV2", read_concat},
    {"TensorListLength", read_length},
    {"TensorListResize", read_resize},
    {"TensorArrayV3", read_array},
    {"TensorArrayScatterV3", read_from_tensor},
    {"TensorArrayReadV3", read_get},
    {"TensorArrayWriteV3", read_set},
    {"TensorArrayGatherV3", read_stack},
    {"TensorArrayConcatV3", read_concat},
    {"TensorArraySizeV3", read_length},
    {NULL, NULL},
};
