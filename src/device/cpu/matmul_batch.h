/* matmul_batch.h: the leading axes of a product of matrices, which broadcast. */
#ifndef TUTTI_DEVICE_CPU_MATMUL_BATCH_H
#define TUTTI_DEVICE_CPU_MATMUL_BATCH_H

#include "program/kernel.h"

typedef struct matmul_batch {
    int rank;
    int64_t count; /* of products */
    int64_t dims[TUTTI_MAX_RANK];
    /* Elements from one matrix to the next along each axis, 0 where a matrix is repeated. */
    int64_t a_steps[TUTTI_MAX_RANK], b_steps[TUTTI_MAX_RANK];
} matmul_batch;

static inline void matmul_batch_steps(const tutti_type *x, const tutti_type *y, int64_t *ret_steps)
{
    int64_t step = x->dims[x->rank - 1] * x->dims[x->rank - 2];
    for (int axis = y->rank - 3; axis >= 0; axis--) {
        int own = axis - (y->rank - x->rank);
        int64_t dim = own < 0 ? 1 : x->dims[own];
        ret_steps[axis] = dim == 1 ? 0 : step;
        step *= dim;
    }
}

static inline matmul_batch matmul_batch_of(const tutti_infer *node)
{
    const tutti_type *y = &node->outputs[0];
    matmul_batch batch = {.rank = y->rank - 2, .count = 1};
    for (int axis = 0; axis < batch.rank; axis++)
        batch.count *= batch.dims[axis] = y->dims[axis];
    matmul_batch_steps(&node->inputs[0], y, batch.a_steps);
    matmul_batch_steps(&node->inputs[1], y, batch.b_steps);
    return batch;
}

/* Where the matrices of product `index` begin. */
static inline void matmul_batch_at(const matmul_batch *batch, int64_t index, int64_t *ret_a,
                                   int64_t *ret_b)
{
    int64_t a = 0, b = 0;
    for (int axis = batch->rank - 1; index > 0; axis--) {
        a += index % batch->dims[axis] * batch->a_steps[axis];
        b += index % batch->dims[axis] * batch->b_steps[axis];
        index /= batch->dims[axis];
    }
    *ret_a = a;
    *ret_b = b;
}

#endif
