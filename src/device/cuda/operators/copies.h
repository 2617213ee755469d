/* copies.h: elements moved between two strided tensors, whatever they are. */
#ifndef TUTTI_CUDA_COPIES_H
#define TUTTI_CUDA_COPIES_H

#include "device/cuda/operators/operator.h"

/* Element (i0, i1, …) of `shape` goes from x + Σ i from to y + Σ i to, in elements of `size` bytes;
 * strides may be negative, and 0 in `from`. No two go to one place. */
typedef struct tutti_cuda_copies {
    int size;
    tutti_cu_pointer x, y;
    int rank; /* up to twice what a tensor has */
    int64_t dim[2 * TUTTI_MAX_RANK], from[2 * TUTTI_MAX_RANK], to[2 * TUTTI_MAX_RANK];
} tutti_cuda_copies;
tutti_status tutti__cuda_copies(const tutti_cuda_call *c, const tutti_cuda_copies *copies);

/* Every element of a view becomes this number, as its type has it. */
tutti_status tutti__cuda_fill(const tutti_cuda_call *c, const tutti_view *y, double value);

#endif
