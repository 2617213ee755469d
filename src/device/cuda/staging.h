/* staging.h: bytes between the host and a GPU, through pinned memory. Those for the GPU cross on a
 * stream of their own, beside what it computes, and wait there in memory of their own until it is
 * their turn. */
#ifndef TUTTI_CUDA_STAGING_H
#define TUTTI_CUDA_STAGING_H

#include "device/cuda/kernels/kernels.h"

typedef struct tutti_cuda_staging tutti_cuda_staging;

/* `on`: the stream in whose order bytes are taken and given. Memory is taken when it is first
 * needed. */
tutti_status tutti__cuda_staging_open(tutti_cuda_stream on, tutti_cuda_staging **ret);
void tutti__cuda_staging_close(tutti_cuda_staging *staging); /* NULL is fine */

/* The host's bytes may change when it returns; `to` has them when it is its turn. */
tutti_status tutti__cuda_stage_in(tutti_cuda_staging *staging, tutti_cu_pointer to,
                                  const void *host, size_t size);
/* Done when it returns. */
tutti_status tutti__cuda_stage_out(tutti_cuda_staging *staging, void *host, tutti_cu_pointer from,
                                   size_t size);
/* Bytes of the GPU's memory that it holds, the most that it may (as many as it wants, at first),
 * and giving them up. */
size_t tutti__cuda_staging_bytes(tutti_cuda_staging *staging);
void tutti__cuda_staging_limit(tutti_cuda_staging *staging, size_t bytes);
void tutti__cuda_staging_shrink(tutti_cuda_staging *staging);

#endif
