/* lines.h: products of matrices of any type, by tiles of our own. */
#ifndef TUTTI_CUDA_LINES_H
#define TUTTI_CUDA_LINES_H

#include "device/cuda/operators/operator.h"

typedef struct tutti_cuda_multiply {
    tutti_cu_pointer a, b, y; /* of input 0's type; y [batch][m][n] */
    int64_t m, n, k;
    tutti_cuda_shape batch;
    tutti_cuda_places at_a, at_b;
    struct {
        int64_t row, column;
    } strides_a, strides_b;
} tutti_cuda_multiply;
tutti_status tutti__cuda_multiply(const tutti_cuda_call *c, const tutti_cuda_multiply *p);

/* y = a b by cuBLASLt where it takes the types, else by tiles: row-major, dense, `batch` of them
 * one after the other; transposed as it says. */
typedef struct tutti_cuda_matmul {
    tutti_dtype dtype;
    tutti_cu_pointer a, b, y;
    int64_t batch, m, n, k;
    bool transpose_a, transpose_b, accumulate;
} tutti_cuda_matmul;
tutti_status tutti__cuda_matmul(const tutti_cuda_call *c, const tutti_cuda_matmul *p);

#endif
