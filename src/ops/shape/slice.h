/* slice.h: which elements x[begin:end:step] takes; shared by slice and slice_grad. */
#ifndef TUTTI_OPS_SHAPE_SLICE_H
#define TUTTI_OPS_SHAPE_SLICE_H

#include "ops/shape/move.h"

/* Along one axis: elements start, start + step, …, `count` of them. */
typedef struct tutti_slice_run {
    int64_t start, step, count; /* count TUTTI_ANY when the axis is unknown */
} tutti_slice_run;

/* One for each axis of a shape, from attributes begin, end and step that were checked. */
void tutti__slice_runs(const tutti_attr *attrs, int attr_count, int rank, const int64_t *dims,
                       tutti_slice_run *ret_runs);
/* Lists no longer than the rank, no step of 0. `x` is what is sliced. */
tutti_status tutti__slice_check(const tutti_infer *node, const tutti_type *x);

static inline bool tutti__slice_is_whole(const tutti_slice_run *run, int64_t dim)
{
    return run->start == 0 && run->step == 1 && run->count == dim && dim != TUTTI_ANY;
}

/* The attributes of slice and slice_grad from options. */
#define TUTTI_SLICE_ATTRS(options)                                                                 \
    tutti__axes_attr("begin", &(options).begin), tutti__axes_attr("end", &(options).end),          \
        tutti__axes_attr("step", &(options).step)

#endif
