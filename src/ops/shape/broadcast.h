/* broadcast.h: what broadcast_to, broadcast_like and sum_like share. Shapes are aligned at their
 * last axes; axis j of the large shape belongs to axis j - (rank of large - rank of small) of the
 * small one, which has the same size, or 1, or does not exist: then it is repeated. */
#ifndef TUTTI_OPS_SHAPE_BROADCAST_H
#define TUTTI_OPS_SHAPE_BROADCAST_H

#include "ops/shape/move.h"

/* Fails unless `small` broadcasts to `large` as far as both are known. `ret_dims` gets the
 * dimensions of `large`, those unknown filled in from `small` where it decides them. */
tutti_status tutti__broadcast_check(const tutti_infer *node, const tutti_type *small,
                                    const tutti_type *large, int64_t *ret_dims);

/* The axis of `small` that runs along axis `axis` of `large`, TUTTI_WHOLE when it is repeated, or
 * TUTTI_PARTIAL_SUM when a dimension is unknown, so that it could be either. */
int tutti__broadcast_axis(const tutti_type *small, const tutti_type *large, int axis);

/* Input 0 broadcast to output 0. */
tutti_status tutti__broadcast_reference(const tutti_kernel_call *call);

#endif
