/* broadcast.c: what broadcast_to, broadcast_like and sum_like share; see broadcast.h. */
#include "ops/shape/broadcast.h"

static tutti_status broadcast_refuse(const tutti_infer *node, const tutti_type *small,
                                     const tutti_type *large)
{
    char a[TUTTI_TYPE_TEXT], b[TUTTI_TYPE_TEXT];
    return RULE_FAIL(node, TUTTI_INVALID,
                     "%s does not broadcast to the shape of %s: counted from the last, each of its "
                     "dimensions must be the same or 1; tutti_reshape can add axes of 1",
                     tutti_type_text(small, a), tutti_type_text(large, b));
}

tutti_status tutti__broadcast_check(const tutti_infer *node, const tutti_type *small,
                                    const tutti_type *large, int64_t *ret_dims)
{
    int shift = large->rank - small->rank;
    if (shift < 0)
        return broadcast_refuse(node, small, large);
    memcpy(ret_dims, large->dims, sizeof large->dims);
    for (int i = 0; i < small->rank; i++) {
        int64_t from = small->dims[i], to = large->dims[i + shift];
        if (from == 1 || from == TUTTI_ANY || from == to)
            continue;
        if (to != TUTTI_ANY)
            return broadcast_refuse(node, small, large);
        ret_dims[i + shift] = from;
    }
    return TUTTI_OK;
}

int tutti__broadcast_axis(const tutti_type *small, const tutti_type *large, int axis)
{
    int own = axis - (large->rank - small->rank);
    if (own < 0 || small->dims[own] == 1)
        return TUTTI_WHOLE;
    return small->dims[own] == TUTTI_ANY || large->dims[axis] == TUTTI_ANY ? TUTTI_PARTIAL_SUM
                                                                           : own;
}

tutti_status tutti__broadcast_reference(const tutti_kernel_call *call)
{
    const tutti_view *x = &call->inputs[0], *y = &call->outputs[0];
    tutti_move move = {.rank = y->rank, .size = tutti_dtype_size(x->dtype)};
    int64_t strides[TUTTI_MAX_RANK];
    tutti__strides_of(x->rank, x->dims, strides);
    tutti__strides_of(y->rank, y->dims, move.to);
    for (int i = y->rank - 1; i >= 0; i--) {
        int own = i - (y->rank - x->rank);
        move.dims[i] = y->dims[i];
        move.from[i] = own < 0 || x->dims[own] == 1 ? 0 : strides[own];
    }
    tutti__move(call, &move, x->data, y->data);
    return TUTTI_OK;
}
