/* gpu.h: one GPU as the target sees it: a stream, memory in the order of that stream, kernels.
 * Everything is enqueued, from any thread; only copies to the host and `finish` wait. */
#ifndef TUTTI_CUDA_GPU_H
#define TUTTI_CUDA_GPU_H

#include "program/kernel.h"

typedef struct tutti_cuda_gpu tutti_cuda_gpu;

/* A kernel as programs see it, and its own descriptor behind. */
typedef struct tutti_cuda_entry {
    tutti_kernel kernel;
    const void *own;
} tutti_cuda_entry;

typedef struct tutti_cuda_gpu_table {
    int (*count)(void); /* GPUs of this machine; 0 when there is no driver */
    tutti_status (*open)(int index, tutti_cuda_gpu **ret);
    void (*close)(tutti_cuda_gpu *gpu);
    /* From a pool, in the order of the stream; NO_MEMORY when it would be more than the limit. */
    tutti_status (*allocate)(tutti_cuda_gpu *gpu, size_t size, void **ret);
    void (*release)(tutti_cuda_gpu *gpu, void *data, size_t size);
    void (*limit)(tutti_cuda_gpu *gpu, size_t bytes); /* of what is allocated; 0: none */
    size_t (*used)(tutti_cuda_gpu *gpu);              /* bytes that are allocated */
    /* The host's bytes may change when it returns, and cross beside what the GPU computes. */
    tutti_status (*copy_in)(tutti_cuda_gpu *gpu, void *to, const void *host, size_t size);
    tutti_status (*copy_out)(tutti_cuda_gpu *gpu, void *host, const void *from, size_t size);
    tutti_status (*copy_within)(tutti_cuda_gpu *gpu, void *to, const void *from, size_t size);
    tutti_status (*fill)(tutti_cuda_gpu *gpu, void *at, unsigned char byte, size_t size);
    /* Pinned memory of the host, and a copy into it that is enqueued: whoever reads it waits. */
    tutti_status (*host_allocate)(tutti_cuda_gpu *gpu, size_t size, void **ret);
    void (*host_release)(tutti_cuda_gpu *gpu, void *data);
    tutti_status (*copy_out_later)(tutti_cuda_gpu *gpu, void *host, const void *from, size_t size);
    /* Until all that was enqueued is done. */
    tutti_status (*finish)(tutti_cuda_gpu *gpu);
    /* A point in what is enqueued; another stream can wait for it without the host. *event: NULL at
     * first; one that was recorded may be again. */
    tutti_status (*record)(tutti_cuda_gpu *gpu, void **event);
    tutti_status (*await)(tutti_cuda_gpu *gpu, void *event); /* gpu NULL: the host does */
    void (*forget)(void *event);                             /* NULL is fine */
    /* A point with its time, and the time from one to another, when both are over. */
    tutti_status (*mark)(tutti_cuda_gpu *gpu, void **event);
    tutti_status (*between)(void *from, void *to, double *ret_seconds);
    /* Does nothing for so long: what is enqueued meanwhile runs without gaps. */
    tutti_status (*hold)(tutti_cuda_gpu *gpu, double seconds);
    /* Measures: bytes a second of a copy, read and written; FLOPs a second of products of f32 and
     * of bf16. */
    tutti_status (*peaks)(tutti_cuda_gpu *gpu, double ret[3]);
    /* What the calling thread launches between these two is recorded, not done, whatever other
     * threads do; a recording can be launched as often as one likes. record_end follows each
     * record_begin that gave TUTTI_OK. */
    tutti_status (*record_begin)(tutti_cuda_gpu *gpu);
    tutti_status (*record_end)(tutti_cuda_gpu *gpu, void **ret_recording, size_t *ret_launches);
    tutti_status (*replay)(tutti_cuda_gpu *gpu, void *recording);
    void (*forget_recording)(tutti_cuda_gpu *gpu, void *recording); /* NULL is fine */
    /* The best kernel for a node, or NULL. */
    const tutti_kernel *(*pick)(const tutti_kernel_query *query);
    /* `fault`: NULL, or where a kernel that can fail writes the least place of a bad value. */
    tutti_status (*launch)(tutti_cuda_gpu *gpu, const tutti_kernel *kernel,
                           const tutti_kernel_call *call, void *fault, bool deterministic);
    /* Whether a call of the same kernel, none of which fail, can be one launch with `first`; and
     * that launch, of calls each of which can. */
    bool (*joins)(const tutti_kernel *kernel, const tutti_kernel_call *first,
                  const tutti_kernel_call *other);
    tutti_status (*launch_joined)(tutti_cuda_gpu *gpu, const tutti_kernel *kernel, int count,
                                  const tutti_kernel_call *const *calls, bool deterministic);
} tutti_cuda_gpu_table;

extern const tutti_cuda_gpu_table tutti_cuda_gpus;

#endif
