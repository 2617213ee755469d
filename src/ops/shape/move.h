/* move.h: moves elements between two strided arrays, whatever they are: the loop under all
 * operators that move data. Rows go by memcpy, transpositions block by block, large moves over the
 * threads of the call. */
#ifndef TUTTI_OPS_SHAPE_MOVE_H
#define TUTTI_OPS_SHAPE_MOVE_H

#include "ops/shape/rule.h"

#define TUTTI_MOVE_RANK (2 * TUTTI_MAX_RANK)

/* Element (i0, i1, …) goes from `from + Σ i from[i]` to `to + Σ i to[i]`. Strides are in elements,
 * may be negative, and 0 on the side that is read. The arrays do not overlap; no two elements go to
 * the same place. */
typedef struct tutti_move {
    int rank;
    size_t size; /* bytes of an element: 1, 2, 4, 8 or 16 */
    int64_t dims[TUTTI_MOVE_RANK];
    int64_t from[TUTTI_MOVE_RANK], to[TUTTI_MOVE_RANK];
} tutti_move;

void tutti__move(const tutti_kernel_call *call, const tutti_move *move, const void *from, void *to);

/* `rows` rows of `row` elements each, the starts of which lie `from_step` and `to_step` apart. */
void tutti__move_rows(const tutti_kernel_call *call, size_t size, int64_t rows, int64_t row,
                      const void *from, int64_t from_step, void *to, int64_t to_step);

/* Row i of `bytes` bytes at `to` = row places[i] at `from`. The arrays do not overlap. */
void tutti__pick(size_t bytes, int64_t count, void *to, const void *from, const int64_t *places);

/* The address of an element. */
static inline void *tutti__element(const tutti_view *view, int64_t index)
{
    return (char *)view->data + index * (int64_t)tutti_dtype_size(view->dtype);
}

#endif
