/* sequence.c: lists of tensors, and tensors that may be absent. A list whose length and places are
 * known exists only while the graph is built; others are tensors of their own (list.h). */
#include "bridge/onnx/list.h"

#include <string.h>

#define MOST 4096

static tutti_onnx_known *list_of(tutti_onnx_import *m, int i)
{
    tutti_onnx_known *known = tutti__onnx_input(m, i);
    if (known && known->sequence)
        return known;
    tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "input %d is no sequence", i);
    return NULL;
}

/* Whether what is done with a list is left to the graph: its length is not known, or the place that
 * is input i. An empty list has no places. */
static bool grows(tutti_onnx_import *m, const tutti_onnx_known *list, int i)
{
    return list->shapes.node ||
           (list->item_count > 0 && tutti__onnx_has(m, i) && !tutti__onnx_try_constant(m, i));
}

static void made_pack(tutti_onnx_import *m, const tutti_onnx_pack *pack)
{
    tutti_onnx_known *known = tutti__arena_take(&m->root->arena, sizeof *known);
    if (!known) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return;
    }
    *known = tutti__onnx_unpacked(pack);
    tutti__onnx_made_known(m, 0, known);
}

static void make_list(tutti_onnx_import *m, size_t count, tutti_onnx_known *const *items)
{
    tutti_onnx_known *list = tutti__arena_take(&m->root->arena, sizeof *list);
    tutti_onnx_known **copy =
        tutti__arena_array(&m->root->arena, count + 1, sizeof(tutti_onnx_known *));
    if (!list || !copy) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return;
    }
    for (size_t i = 0; i < count; i++)
        copy[i] = items[i];
    *list = (tutti_onnx_known){.name = "", .sequence = true, .item_count = count, .items = copy};
    tutti__onnx_made_known(m, 0, list);
}

static tutti_onnx_known *item_of(tutti_onnx_import *m, tutti_sym sym)
{
    tutti_onnx_known *known = tutti__arena_take(&m->root->arena, sizeof *known);
    if (!known) {
        tutti__onnx_read_fail(m, TUTTI_NO_MEMORY, "no memory for the model");
        return m->root->missing;
    }
    *known = (tutti_onnx_known){.name = "", .plain = sym};
    return known;
}

/* A place in a list of `count`, from input i or `fallback`; -1 after a failure. */
static int64_t sequence_place(tutti_onnx_import *m, int i, int64_t count, int64_t fallback,
                              int64_t most)
{
    int64_t at;
    if (!tutti__onnx_read_int(m, i, fallback, &at))
        return -1;
    at += at < 0 ? count : 0;
    if (at >= 0 && at < most)
        return at;
    tutti__onnx_read_fail(m, TUTTI_CORRUPT, "place %lld of a sequence of %lld", (long long)at,
                          (long long)count);
    return -1;
}

static void read_construct(tutti_onnx_import *m)
{
    tutti_onnx_known *items[MOST];
    size_t count = m->node->inputs.count;
    if (count > MOST) {
        tutti__onnx_read_fail(m, TUTTI_TOO_LARGE, "has more than %d elements", MOST);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if (!(items[i] = tutti__onnx_input(m, (int)i)))
            tutti__onnx_read_fail(m, TUTTI_CORRUPT, "input %zu is missing", i);
    if (m->status == TUTTI_OK)
        make_list(m, count, items);
}

static void read_empty(tutti_onnx_import *m)
{
    make_list(m, 0, NULL);
}

static void insert_later(tutti_onnx_import *m, tutti_onnx_known *list)
{
    tutti_sym x = tutti__onnx_sym(m, 1), at = TUTTI_NO_SYM;
    tutti_onnx_pack pack = tutti__onnx_packed(m, list);
    if (tutti__onnx_has(m, 2))
        at = tutti__onnx_sym(m, 2);
    if (m->status != TUTTI_OK)
        return;
    tutti_type type = tutti_sym_type(x), of = pack.of;
    if (!tutti__onnx_widen(&of, &type)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED,
                              "the tensors of a list whose length is not known differ in their "
                              "ranks or element types");
        return;
    }
    pack = tutti__onnx_list_with(&pack, x, at);
    made_pack(m, &pack);
}

static void read_insert(tutti_onnx_import *m)
{
    tutti_onnx_known *list = list_of(m, 0), *item = tutti__onnx_input(m, 1), *items[MOST + 1];
    if (!list || !item || list->item_count >= MOST)
        return;
    if (grows(m, list, 2)) {
        insert_later(m, list);
        return;
    }
    int64_t count = (int64_t)list->item_count, at = sequence_place(m, 2, count, count, count + 1);
    for (int64_t i = 0; at >= 0 && i <= count; i++)
        items[i] = i < at ? list->items[i] : i == at ? item : list->items[i - 1];
    if (at >= 0)
        make_list(m, (size_t)count + 1, items);
}

static void read_erase(tutti_onnx_import *m)
{
    tutti_onnx_known *list = list_of(m, 0), *items[MOST];
    if (!list || list->item_count > MOST)
        return;
    if (grows(m, list, 1)) {
        tutti_onnx_pack pack = tutti__onnx_packed(m, list);
        tutti_sym where = tutti__onnx_has(m, 1) ? tutti__onnx_sym(m, 1) : TUTTI_NO_SYM;
        if (m->status == TUTTI_OK)
            pack = tutti__onnx_list_without(&pack, where);
        made_pack(m, &pack);
        return;
    }
    int64_t count = (int64_t)list->item_count, at = sequence_place(m, 1, count, count - 1, count);
    for (int64_t i = 0; at >= 0 && i < count - 1; i++)
        items[i] = list->items[i < at ? i : i + 1];
    if (at >= 0)
        make_list(m, (size_t)count - 1, items);
}

static void read_at(tutti_onnx_import *m)
{
    tutti_onnx_known *list = list_of(m, 0);
    if (list && grows(m, list, 1)) {
        tutti_onnx_pack pack = tutti__onnx_packed(m, list);
        tutti_sym where = tutti__onnx_sym(m, 1);
        if (m->status == TUTTI_OK)
            tutti__onnx_made(m, 0, tutti__onnx_list_at(&pack, where));
        return;
    }
    int64_t at =
        list ? sequence_place(m, 1, (int64_t)list->item_count, 0, (int64_t)list->item_count) : -1;
    if (at >= 0)
        tutti__onnx_made_known(m, 0, list->items[at]);
}

static void read_length(tutti_onnx_import *m)
{
    tutti_onnx_known *list = list_of(m, 0);
    tutti_tensor *value;
    if (list && list->shapes.node) {
        tutti_onnx_pack pack = tutti__onnx_packed(m, list);
        tutti__onnx_made(m, 0, tutti__onnx_list_length(&pack));
        return;
    }
    if (!list || tutti_tensor_create(TUTTI_I64, 0, NULL, &value) != TUTTI_OK)
        return;
    tutti_tensor_set_int(value, 0, (int64_t)list->item_count);
    tutti__onnx_made_value(m, 0, value);
}

/* Sizes of the pieces: a list, equal ones of a size, or 1. */
static int64_t piece_sizes(tutti_onnx_import *m, int64_t whole, int64_t *ret)
{
    const tutti_tensor *split =
        tutti__onnx_has(m, 1) ? tutti__onnx_read_constant(m, 1, "the sizes") : NULL;
    bool listed = split && tutti_tensor_rank(split) == 1;
    int64_t each = split && !listed ? tutti_tensor_get_int(split, 0) : 1, count = 0;
    if (m->status != TUTTI_OK || whole < 0 || each < 1 || whole / each > MOST ||
        (listed && tutti_tensor_count(split) > MOST)) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "the sizes of its pieces are not known");
        return -1;
    }
    for (int64_t i = 0; listed && i < tutti_tensor_count(split); i++)
        ret[count++] = tutti_tensor_get_int(split, i);
    for (int64_t left = whole; !listed && left > 0; left -= each)
        ret[count++] = each < left ? each : left;
    return count;
}

/* Whether each piece is one slice, said or not. (The axis then goes where keepdims is 0: that holds
 * for single slices only; PyTorch writes unbind with a size of 1.) */
static bool single_slices(tutti_onnx_import *m)
{
    const tutti_tensor *split = tutti__onnx_has(m, 1) ? tutti__onnx_try_constant(m, 1) : NULL;
    return !tutti__onnx_has(m, 1) ||
           (split && tutti_tensor_rank(split) == 0 && tutti_tensor_get_int(split, 0) == 1);
}

static void read_split(tutti_onnx_import *m)
{
    tutti_sym x = tutti__onnx_sym(m, 0);
    tutti_onnx_known *items[MOST];
    int64_t sizes[MOST], from = 0;
    if (!x.node)
        return;
    tutti_type type = tutti_sym_type(x);
    int axis = tutti__onnx_attr_axis(m, "axis", 0);
    axis += axis < 0 ? type.rank : 0;
    bool drops = single_slices(m) && !tutti__onnx_attr_int(m, "keepdims", 1);
    if (axis >= 0 && axis < type.rank && type.dims[axis] < 0 && single_slices(m)) {
        tutti_onnx_pack pack = tutti__onnx_list_slices(x, axis, !drops);
        made_pack(m, &pack);
        return;
    }
    int64_t count = axis >= 0 && axis < type.rank ? piece_sizes(m, type.dims[axis], sizes) : -1;
    for (int64_t i = 0; i < count; i++) {
        tutti_sym piece = tutti_slice_axis(x, axis, from, from + sizes[i]);
        from += sizes[i];
        items[i] = item_of(m, drops ? tutti_squeeze(piece, axis) : piece);
    }
    if (count >= 0)
        make_list(m, (size_t)count, items);
}

static void read_concat(tutti_onnx_import *m)
{
    tutti_onnx_known *list = list_of(m, 0);
    tutti_sym parts[256];
    int axis = tutti__onnx_attr_axis(m, "axis", 0);
    if (!list)
        return;
    if (list->shapes.node) {
        tutti_onnx_pack pack = tutti__onnx_packed(m, list);
        tutti_sym y =
            tutti__onnx_list_joined(&pack, axis, tutti__onnx_attr_int(m, "new_axis", 0) != 0);
        if (!y.node)
            tutti__onnx_read_fail(m, TUTTI_INVALID, "joins tensors of rank %d along axis %d",
                                  pack.of.rank, axis);
        tutti__onnx_made(m, 0, y);
        return;
    }
    if (list->item_count == 0 || list->item_count > 256) {
        tutti__onnx_read_fail(m, TUTTI_UNSUPPORTED, "joins %zu tensors", list->item_count);
        return;
    }
    for (size_t i = 0; i < list->item_count; i++)
        parts[i] = tutti__onnx_symbol(m, list->items[i]);
    if (m->status == TUTTI_OK)
        tutti__onnx_made(m, 0,
                         tutti__onnx_attr_int(m, "new_axis", 0)
                             ? tutti_stack((int)list->item_count, parts, .axis = axis)
                             : tutti_concatenate((int)list->item_count, parts, .axis = axis));
}

/* ---- what may be absent ---- */

static void read_optional(tutti_onnx_import *m)
{
    tutti_onnx_known *known = tutti__onnx_input(m, 0);
    tutti__onnx_made_known(m, 0, known ? known : m->root->missing);
}

static void read_has(tutti_onnx_import *m)
{
    tutti_tensor *value;
    if (tutti_tensor_create(TUTTI_BOOL, 0, NULL, &value) != TUTTI_OK)
        return;
    tutti_tensor_set_int(value, 0, tutti__onnx_has(m, 0));
    tutti__onnx_made_value(m, 0, value);
}

static void read_get(tutti_onnx_import *m)
{
    if (tutti__onnx_has(m, 0))
        tutti__onnx_made_known(m, 0, tutti__onnx_input(m, 0));
    else
        tutti__onnx_read_fail(m, TUTTI_INVALID, "takes what is absent");
}

const tutti_onnx_op tutti_onnx_sequence_construct = {
    .type = "SequenceConstruct",
    .read = read_construct,
};

const tutti_onnx_op tutti_onnx_sequence_empty = {
    .type = "SequenceEmpty",
    .read = read_empty,
};

const tutti_onnx_op tutti_onnx_sequence_insert = {
    .type = "SequenceInsert",
    .read = read_insert,
};

const tutti_onnx_op tutti_onnx_sequence_erase = {
    .type = "SequenceErase",
    .read = read_erase,
};

const tutti_onnx_op tutti_onnx_sequence_at = {
    .type = "SequenceAt",
    .read = read_at,
};

const tutti_onnx_op tutti_onnx_sequence_length = {
    .type = "SequenceLength",
    .read = read_length,
};

const tutti_onnx_op tutti_onnx_split_to_sequence = {
    .type = "SplitToSequence",
    .read = read_split,
    .note = "pieces of known sizes, or of one",
};

const tutti_onnx_op tutti_onnx_concat_from_sequence = {
    .type = "ConcatFromSequence",
    .read = read_concat,
};

const tutti_onnx_op tutti_onnx_optional = {
    .type = "Optional",
    .read = read_optional,
    .note = "known while the graph is built",
};

const tutti_onnx_op tutti_onnx_optional_has = {
    .type = "OptionalHasElement",
    .read = read_has,
    .note = "known while the graph is built",
};

const tutti_onnx_op tutti_onnx_optional_get = {
    .type = "OptionalGetElement",
    .read = read_get,
    .note = "known while the graph is built",
};
