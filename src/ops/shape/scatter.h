/* scatter.h: indices from data, checked, and sums at places that they name. */
#ifndef TUTTI_OPS_SHAPE_SCATTER_H
#define TUTTI_OPS_SHAPE_SCATTER_H

#include "ops/shape/move.h"

/* Element of a contiguous view of i32 or i64. */
static inline int64_t tutti__index_at(const tutti_view *indices, int64_t i)
{
    return indices->dtype == TUTTI_I32 ? ((const int32_t *)indices->data)[i]
                                       : ((const int64_t *)indices->data)[i];
}

/* Input `input` holds indices; element i is one along axis first_axis + i mod columns of a tensor
 * with these dimensions. One out of range fails with its value, its place and the range. */
tutti_status tutti__indices_check(const tutti_kernel_call *call, int input, int first_axis,
                                  int columns, const int64_t *dims);

/* y = 0, then for each i in [0, count): y[start(i) .. + length) += updates[i length .. + length),
 * in this order. f32, f64 and integers add in their own type; 16-bit floats add in double and round
 * once, tile by tile of y, for which memory is taken. */
typedef struct tutti_scatter {
    int64_t count, length;
    void (*starts)(const void *context, int64_t first, int64_t count, int64_t *ret_starts);
    const void *context;
} tutti_scatter;
tutti_status tutti__scatter_add(const tutti_kernel_call *call, const tutti_scatter *scatter,
                                const tutti_view *updates, const tutti_view *y);

/* take_along and put_along whose indices may be `fewer` than x's, or like's, elements beside the
 * axis, as far as shapes are known: they name the first ones. */
tutti_sym tutti__take_along(tutti_sym x, tutti_sym indices, int axis, bool fewer);
tutti_sym tutti__put_along(tutti_sym indices, tutti_sym updates, tutti_sym like, int axis,
                           bool fewer);
/* Whether sizes agree beside the axis: equal, or those of the indices at most as large. */
bool tutti__along_agrees(int64_t size, int64_t indices, bool fewer);
/* Indices beside a tensor of which they name elements, as axes of the indices: the element that
 * index (i0, i1, …) names stands at Σ i strides[i] + index stride. */
typedef struct tutti_along {
    const tutti_view *indices;
    int rank;
    int64_t dims[TUTTI_MAX_RANK], strides[TUTTI_MAX_RANK]; /* 0 along the axis */
    int64_t size, stride;                                  /* of the tensor along the axis */
} tutti_along;
tutti_along tutti__along(const tutti_view *indices, const int64_t *dims, int axis);
/* Where the elements that indices [first, first + count) name stand in the tensor. Negative ones
 * count from the end. */
void tutti__along_places(const tutti_along *along, int64_t first, int64_t count,
                         int64_t *ret_places);

/* indices [.., k] as starts in a tensor: for gather_nd and scatter_nd. */
typedef struct tutti_index_rows {
    const tutti_view *indices;
    int columns;
    int64_t rows, length;            /* of indices; elements of what one row names */
    int64_t strides[TUTTI_MAX_RANK]; /* of the first `columns` axes */
} tutti_index_rows;
tutti_index_rows tutti__index_rows(const tutti_view *indices, int rank, const int64_t *dims);
void tutti__index_rows_starts(const void *index_rows, int64_t first, int64_t count,
                              int64_t *ret_starts);
/* The last dimension of indices, which must be known and at most `rank`. */
tutti_status tutti__index_columns(const tutti_infer *node, int input, int rank, int *ret_columns);

/* What scatter_nd and scatter_nd_like share: inputs indices and updates; the result's shape is that
 * of `like`. */
tutti_status tutti__scatter_nd_infer(tutti_infer *node, const tutti_type *like);
tutti_status tutti__scatter_nd_gradient(tutti_gradient_call *node);
tutti_status tutti__scatter_nd_reference(const tutti_kernel_call *call);
/* The indices: each piece of them adds its part. Or an axis that is not indexed. */
int tutti__scatter_nd_split(const tutti_infer *node, int capacity, tutti_split *ret);
void tutti__scatter_nd_cost(const tutti_infer *node, tutti_cost *ret);

#endif
