/* tensor_lists.c: the forms that lists of tensors take, and what goes into bodies of loops and
 * branches. */
#include "bridge/graphdef/graphdef.h"

#include <string.h>

/* Zeros [count, …] of tensors like x. */
tutti_sym tutti__graphdef_zeros(tutti_sym x, tutti_sym count)
{
    tutti_type type = tutti_sym_type(x);
    int64_t dims[TUTTI_MAX_RANK + 1] = {TUTTI_ANY};
    memcpy(dims + 1, type.dims, (size_t)type.rank * sizeof *dims);
    tutti_sym whole = tutti_concatenate(TUTTI_SYMS(tutti_reshape(count, 1), tutti_shape(x)));
    return (tutti_fill_dynamic)(whole, type.dtype, 0, type.rank + 1, dims);
}

static bool is_full_type(const tutti_graphdef_value *list)
{
    bool full = list->ranked && list->of.dtype != TUTTI_NO_DTYPE && list->of.rank < TUTTI_MAX_RANK;
    for (int i = 0; full && i < list->of.rank; i++)
        full = list->of.dims[i] >= 0;
    return full;
}

/* A list of which only the number of tensors, and perhaps their type, is known. */
static void settle_empty(tutti_graphdef_import *m, tutti_graphdef_value *list)
{
    if (!is_full_type(list))
        return;
    tutti_sym one = (tutti_fill)(m->graph, list->of.dtype, 0, list->of.rank, list->of.dims);
    list->sym = tutti__graphdef_zeros(one, list->count);
}

static void settle_items(tutti_graphdef_import *m, tutti_graphdef_value *list)
{
    tutti_sym some = TUTTI_NO_SYM;
    for (int i = 0; i < list->item_count && !some.node; i++)
        some = list->items[i];
    list->count = tutti_scalar(m->graph, TUTTI_I64, list->item_count);
    if (some.node && list->item_count > 0) {
        tutti_sym *parts = tutti__graphdef_take(m, (size_t)list->item_count, sizeof *parts);
        for (int i = 0; parts && i < list->item_count; i++)
            parts[i] = list->items[i].node ? list->items[i] : tutti_zeros_like(some);
        if (parts)
            list->sym = tutti_stack(list->item_count, parts);
    } else {
        settle_empty(m, list);
    }
    list->items = NULL;
    list->item_count = 0;
}

bool tutti__graphdef_resolve(tutti_graphdef_import *m, tutti_graphdef_value *value)
{
    if (value->list && value->items)
        settle_items(m, value);
    else if (value->list && !value->sym.node)
        settle_empty(m, value);
    return m->status == TUTTI_OK;
}

tutti_sym tutti__graphdef_lay(const tutti_graphdef_value *value)
{
    return value->sym.node ? value->sym : value->count;
}

tutti_graphdef_value tutti__graphdef_lift(const tutti_graphdef_value *like, tutti_sym sym)
{
    tutti_graphdef_value value = *like;
    if (like->sym.node)
        value.sym = sym;
    else
        value.count = sym;
    if (value.list && value.sym.node)
        value.count = TUTTI_NO_SYM;
    return value;
}

tutti_sym tutti__graphdef_loosened(tutti_sym x)
{
    int rank = tutti_sym_ok(x) ? tutti_sym_type(x).rank : 0;
    int64_t open[TUTTI_MAX_RANK];
    for (int i = 0; i < rank; i++)
        open[i] = TUTTI_ANY;
    if (rank == 0)
        return x;
    return tutti_reshape_like(x, (tutti_fill_dynamic)(tutti_shape(x), TUTTI_BOOL, 0, rank, open));
}
