/* sparse.h: what the sparse operators share: checks of (indices, values, dense_shape). */
#ifndef TUTTI_OPS_SPARSE_SPARSE_H
#define TUTTI_OPS_SPARSE_SPARSE_H

#include "ops/state/state.h"

/* Input i is i64 [n, rank] (rank -1: any). */
tutti_status tutti__need_positions(const tutti_infer *node, int i, int64_t rank);
/* Input i is [n], n the number of positions at input `positions`; numbers. */
tutti_status tutti__need_values(const tutti_infer *node, int i, int positions);
/* Input i is an i64 vector of `rank` entries: its constant value as dimensions, or TUTTI_ANY each.
 */
tutti_status tutti__need_dense_shape(const tutti_infer *node, int i, int64_t rank,
                                     int64_t ret_dims[TUTTI_MAX_RANK]);

/* The dense shape's values: none negative, their product fits. */
tutti_status tutti__dense_shape(const tutti_kernel_call *call, const tutti_view *shape,
                                int64_t ret_dims[TUTTI_MAX_RANK]);
/* Every position lies inside the dims. */
tutti_status tutti__check_positions(const tutti_kernel_call *call, const tutti_view *positions,
                                    const int64_t *dims);

/* Sums that become an output's elements: floats in double, rounded once at the end; integers wrap.
 */
typedef struct tutti_sums {
    const tutti_view *out;
    bool floats;
    union tutti_sum_with {
        double f;
        uint64_t i;
    } * at;
} tutti_sums;
/* All zero. Ends with tutti__sums_end, which writes the output. */
tutti_status tutti__sums_begin(const tutti_kernel_call *call, const tutti_view *out,
                               tutti_sums *ret);
/* Adds x[i + k] to sum `to` + k, for k in [0, count). */
void tutti__sums_add(tutti_sums *sums, int64_t to, const tutti_view *x, int64_t i, int64_t count);
/* Adds x[i] * y[j + k] to sum `to` + k, for k in [0, count). */
void tutti__sums_add_products(tutti_sums *sums, int64_t to, const tutti_view *x, int64_t i,
                              const tutti_view *y, int64_t j, int64_t count);
void tutti__sums_end(tutti_sums *sums);

#endif
