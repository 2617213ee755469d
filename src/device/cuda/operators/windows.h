/* windows.h: windows that slide over one to three dimensions; two are three with a depth of one. */
#ifndef TUTTI_CUDA_WINDOWS_H
#define TUTTI_CUDA_WINDOWS_H

#include "device/cuda/operators/operator.h"

/* As the kernels have it. */
typedef struct tutti_cuda_windows {
    int64_t in[3], out[3], size[3], stride[3], dilation[3], before[3];
    int64_t batch, groups, cin, cout; /* channels of one group */
} tutti_cuda_windows;

/* From an operator's attributes and sizes that are known. */
tutti_cuda_windows tutti__cuda_windows(const tutti_attr *attrs, int attr_count, const int64_t *in,
                                       const int64_t *out, const int64_t *size);
/* Of a convolution or one of its gradients; *ret_kind: 0 forward, 1 of the input, 2 of the kernel.
 */
tutti_cuda_windows tutti__cuda_convolution_windows(const tutti_cuda_call *c, int *ret_kind);
/* Element by element. */
tutti_status tutti__cuda_convolve(const tutti_cuda_call *c);

#endif
