/* source.h: a file of kernels. kernels/x.cu holds their text, which the build puts into the module
 * (tools/embed.py); kernels/x.c says how they are started and ends in the descriptor.
 *
 * tables: tutti_cuda_source
 */
#ifndef TUTTI_CUDA_SOURCE_H
#define TUTTI_CUDA_SOURCE_H

#include <stddef.h>

/* Text of a file; made by tools/embed.py. */
typedef struct tutti_cuda_text {
    const char *name; /* "softmax_cross_entropy.cu" */
    const char *text;
} tutti_cuda_text;

typedef struct tutti_cuda_source {
    const char *name;
    const tutti_cuda_text *text;
    /* Options of each variant that a test compiles for every chip; NULL after the last. */
    const char *const *variants;
} tutti_cuda_source;

/* What every kernel begins with, found as #include "common.cuh", and element-wise operators, found
 * as #include "elementwise.cuh". */
extern const tutti_cuda_text tutti__cuda_text_common_cuh, tutti__cuda_text_elementwise_cuh;

/* Every source; NULL after the last. */
const tutti_cuda_source *const *tutti__cuda_sources(void);

#endif
