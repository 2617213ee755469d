/* pad.h: which element of x stands at a place of the padded tensor; shared by pad and pad_grad. */
#ifndef TUTTI_OPS_SHAPE_PAD_H
#define TUTTI_OPS_SHAPE_PAD_H

#include "ops/shape/move.h"

typedef enum tutti_pad_mode {
    TUTTI_PAD_CONSTANT,
    TUTTI_PAD_REFLECT,
    TUTTI_PAD_EDGE
} tutti_pad_mode;

/* Of a node or call whose attributes were checked. */
tutti_pad_mode tutti__pad_mode(const tutti_attr *attrs, int attr_count);

/* Checks mode and paddings against the shape of what is padded. */
tutti_status tutti__pad_check(const tutti_infer *node, const tutti_type *x);

/* Position `at` of the padded axis holds element i of the axis of size `size`:
 *   reflect  i = |at - before|, and mirrored at size - 1 behind it
 *   edge     i = at - before, held inside [0, size)
 * A constant has no element: -1. */
static inline int64_t tutti__pad_source(tutti_pad_mode mode, int64_t at, int64_t before,
                                        int64_t size)
{
    int64_t i = at - before;
    if (i >= 0 && i < size)
        return i;
    if (mode == TUTTI_PAD_CONSTANT)
        return -1;
    if (mode == TUTTI_PAD_EDGE)
        return i < 0 ? 0 : size - 1;
    return i < 0 ? -i : 2 * (size - 1) - i;
}

#endif
