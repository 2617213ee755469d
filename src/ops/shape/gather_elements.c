/* gather_elements.c: take_along for indices that may be negative, or fewer beside the axis. */
#include "ops/shape/scatter.h"

/* A negative index counts from the end: i + size where i < 0. */
static tutti_sym from_the_front(tutti_sym x, tutti_sym indices, int axis)
{
    tutti_dtype dtype = tutti_sym_type(indices).dtype;
    tutti_sym size = tutti_cast(tutti_size(x, axis), dtype);
    tutti_sym below = tutti_less(indices, 0);
    return tutti_where(below, tutti_add(indices, size), indices);
}

tutti_sym(tutti_gather_elements)(tutti_sym x, tutti_sym indices, int axis)
{
    if (!tutti_sym_ok(x) || !tutti_sym_ok(indices))
        return tutti_take_along(x, indices, axis); /* which says so */
    tutti_type type = tutti_sym_type(x), places = tutti_sym_type(indices);
    if (type.rank != places.rank || axis < -type.rank || axis >= type.rank)
        return tutti_take_along(x, indices, axis);
    bool unknown = false;
    for (int i = 0; i < type.rank; i++) {
        if (i == tutti__axis_of(axis, type.rank))
            continue;
        if (places.dims[i] == TUTTI_ANY)
            unknown = true;
        else if (type.dims[i] == TUTTI_ANY || type.dims[i] > places.dims[i])
            x = tutti_slice_axis(x, i, 0, places.dims[i]);
    }
    return tutti__take_along(x, from_the_front(x, indices, axis), axis, unknown);
}
