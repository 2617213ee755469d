/* scatter.h: rows combined at places that indices name, in the order of the updates. */
#ifndef TUTTI_CUDA_SCATTER_H
#define TUTTI_CUDA_SCATTER_H

#include "device/cuda/operators/operator.h"

typedef struct tutti_cuda_scatter {
    tutti_dtype dtype;
    int64_t count, length; /* updates, elements of one */
    uint32_t rows;         /* of y; keys from there on go nowhere */
    int combine;           /* 0 add, 1 multiply, 2 largest, 3 smallest, 4 the last one */
    int store;             /* 0: y[row] = it; 1: joined with y[row]; 2: y[row] - it; 3: y[i], i
                              the first update of the row */
    tutti_cu_pointer updates, y; /* y is all written already */
    tutti_cu_pointer workspace;  /* begins with the keys: count u32 */
} tutti_cuda_scatter;
tutti_status tutti__cuda_scatter(const tutti_cuda_call *c, const tutti_cuda_scatter *s);
size_t tutti__cuda_scatter_workspace(int64_t count, int64_t length);
/* keys of indices along an axis of `size` behind `outer` others; bad ones give `rows`. */
tutti_status tutti__cuda_scatter_keys(const tutti_cuda_call *c, const tutti_view *indices,
                                      int64_t outer, int64_t size, uint32_t rows,
                                      tutti_cu_pointer keys);

#endif
