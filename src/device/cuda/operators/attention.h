/* attention.h: attention of any type, by our own kernels: what others fall back to. */
#ifndef TUTTI_CUDA_OPERATORS_ATTENTION_H
#define TUTTI_CUDA_OPERATORS_ATTENTION_H

#include "device/cuda/operators/operator.h"

/* Workspace of a gradient: 16 bytes a query. */
tutti_status tutti__cuda_attention_any(const tutti_cuda_call *c);

#endif
