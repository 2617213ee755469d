/* operator.h: which kernels of a GPU run which operators. One descriptor each; the target chooses
 * by score, as the CPU does (program/kernel.h).
 *
 * tables: tutti_cuda_kernel
 *
 * A call's views hold addresses of the device. A kernel enqueues on the stream and returns; it
 * allocates nothing, so it may be captured, after a first call outside of a capture has compiled
 * what it starts and chosen what libraries offer. Inputs are contiguous, begin on 16 bytes, and are
 * not changed; a handle's view is the variable, which an update writes, and output 0 besides where
 * that is other memory. */
#ifndef TUTTI_CUDA_OPERATOR_H
#define TUTTI_CUDA_OPERATOR_H

#include <stdio.h>

#include "base/container.h"
#include "device/cuda/compile/load.h"
#include "device/cuda/kernels/kernels.h"
#include "program/kernel.h"

struct tutti_cuda_products;
struct tutti_cuda_dnn;

/* What kernels of one device share. */
typedef struct tutti_cuda_call {
    tutti_cuda_stream on;
    const tutti_kernel_call *call; /* workspace and plan too */
    /* Of an operator that can fail: a u64 on the device, or 0. The kernel writes the least place of
     * a bad value there, and goes on; whoever reads UINT64_MAX again knows that all was well. */
    tutti_cu_pointer fault;
    struct tutti_cuda_products *products; /* matrix products of this device */
    const struct tutti_cuda_dnn *dnn;     /* cuDNN, or NULL where it is not installed */
    bool deterministic;
    bool tf32; /* f32 products may be rounded so */
} tutti_cuda_call;

typedef struct tutti_cuda_kernel {
    const char *name; /* "gather.rows"; goes into the program's hash with its version */
    int version;
    const char *op;         /* the operator it runs, TUTTI_KERNEL_ELEMENTWISE or TUTTI_KERNEL_ANY */
    const char *const *ops; /* (optional) more of them; NULL after the last */
    uint32_t inplace;       /* bit i: output 0 may be written over input i when their types agree */
    bool turned;            /* of attention: see TUTTI_KERNEL_TURNED */
    bool each;              /* output i may be written over input i, for every i */
    /* Of the operators that `op` stands for, whether it runs this one on any types; NULL: all. */
    bool (*covers)(const tutti_op *op);
    /* 0 refuses; 100: a good general kernel. */
    int (*score)(const tutti_kernel_query *query);
    size_t (*workspace)(const tutti_kernel_query *query); /* (optional) bytes */
    tutti_status (*prepare)(const tutti_kernel_query *query, void **ret_plan); /* (optional) */
    void (*discard)(void *plan);                                               /* (optional) */
    tutti_status (*run)(const tutti_cuda_call *c);
    /* (optional) Whether two calls may be one launch, and that: `count` calls, each of which joins
     * the first. */
    bool (*joins)(const tutti_cuda_call *first, const tutti_cuda_call *other);
    tutti_status (*run_many)(const tutti_cuda_call *calls, int count);
} tutti_cuda_kernel;

/* Every kernel; NULL after the last. */
const tutti_cuda_kernel *const *tutti__cuda_kernels(void);
/* Whether a kernel runs an operator on some types. */
bool tutti__cuda_kernel_covers(const tutti_cuda_kernel *kernel, const tutti_op *op);
/* The best kernel for a node, or NULL. */
const tutti_cuda_kernel *tutti__cuda_kernel_pick(const tutti_kernel_query *query);

/* ---- what kernels are written with ---- */

/* A type in CUDA C++: "bf16"; NULL for strings. */
const char *tutti__cuda_dtype(tutti_dtype dtype);

static inline tutti_cu_pointer tutti__cuda_in(const tutti_cuda_call *c, int i)
{
    return (tutti_cu_pointer)(uintptr_t)c->call->inputs[i].data;
}
static inline tutti_cu_pointer tutti__cuda_out(const tutti_cuda_call *c, int i)
{
    return (tutti_cu_pointer)(uintptr_t)c->call->outputs[i].data;
}
static inline tutti_cu_pointer tutti__cuda_work(const tutti_cuda_call *c)
{
    return (tutti_cu_pointer)(uintptr_t)c->call->workspace;
}
int64_t tutti__cuda_count(const tutti_view *view);
static inline int64_t tutti__cuda_type_count(const tutti_type *type)
{
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++)
        count *= type->dims[i];
    return count;
}
/* Counts of elements before, along and behind an axis, which may be negative. */
void tutti__cuda_around(const tutti_view *view, int64_t axis, int64_t ret[3]);

/* As the kernels have them: `shape` and `places` of common.cuh. */
typedef struct tutti_cuda_shape {
    int64_t rank, dim[TUTTI_MAX_RANK];
} tutti_cuda_shape;
typedef struct tutti_cuda_places {
    int64_t stride[TUTTI_MAX_RANK];
} tutti_cuda_places;
tutti_cuda_shape tutti__cuda_shape(int rank, const int64_t *dims);
/* Row-major strides. */
tutti_cuda_places tutti__cuda_dense(int rank, const int64_t *dims);
/* Strides of a tensor that is broadcast to a shape: aligned at the last axis, 0 where repeated. */
tutti_cuda_places tutti__cuda_spread(const tutti_cuda_shape *to, int rank, const int64_t *dims);
/* Leaves axes of size 1 out and joins axes that all of the `count` tensors run through as one. */
void tutti__cuda_collapse(tutti_cuda_shape *shape, int count, tutti_cuda_places **places);

/* Starts `entry` of a source with options like printf, blocks of `threads`; arguments are addresses
 * of the values. Starts nothing for 0 blocks. */
tutti_status tutti__cuda_start(const tutti_cuda_call *c, const tutti_cuda_source *source,
                               const char *entry, int64_t blocks, int threads, void **arguments,
                               const char *options, ...) TUTTI_PRINTF(7, 8);
/* Blocks of 256 threads for so many elements, bounded: kernels go round. */
int64_t tutti__cuda_blocks(int64_t elements);
tutti_status tutti__cuda_clear(const tutti_cuda_call *c, tutti_cu_pointer at, int64_t bytes);
tutti_status tutti__cuda_copy(const tutti_cuda_call *c, tutti_cu_pointer to, tutti_cu_pointer from,
                              int64_t bytes);

#endif
