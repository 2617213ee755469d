/* pool_gradient.h: the frame of kernels for the gradients of kernel and bias of p = max_pool2d(y),
 * y = relu(conv2d(x, kernel) + bias), from y and the gradient of p, for files compiled once for
 * each instruction set. A kernel says what it takes, how much memory a piece needs, and sums a
 * chunk. */
#ifndef TUTTI_DEVICE_CPU_CONV_POOL_GRADIENT_H
#define TUTTI_DEVICE_CPU_CONV_POOL_GRADIENT_H

#include "device/cpu/conv/kernel_sum.h"
#include "device/cpu/conv/layer.h"
#include "device/cpu/slots.h"
#include "device/cpu/vector.h"

enum { MOST_CELLS = 64 }; /* of a pool's window */

typedef struct plan {
    tutti_conv_layer_gradient layer;
    kernel_sum sum;
    size_t slot; /* bytes of a piece */
    int threads;
} plan;

typedef struct work {
    const plan *plan;
    const float *x, *y, *grad;
    float *partial;
    tutti_slots slots;
} work;

/* Everything but the walk and the slot. Many channels are for transformed tiles. */
static inline bool pool_gradient_make(const tutti_kernel_query *query, plan *ret)
{
    if (!tutti__conv_layer_gradient(&query->node, "conv2d_pool_gradient", &ret->layer))
        return false;
    const tutti_windows *w = &ret->layer.windows;
    kernel_sum_make(&ret->layer.shape, w->size[0], 1, &ret->sum);
    ret->threads = query->threads;
    return ret->layer.shape.cin < 12 && w->size[0] * w->size[1] <= MOST_CELLS;
}

/* Padded input, partial sums, slots. */
static inline int64_t before_slots(const plan *p, int64_t padded)
{
    return (padded + kernel_sum_partials(&p->sum) + 15) / 16 * 16;
}

static inline size_t pool_gradient_workspace(const plan *p)
{
    int64_t padded = tutti__conv_windows_sizes(&p->layer.shape, false).padded;
    return (size_t)before_slots(p, padded) * sizeof(float) +
           p->slot * (size_t)tutti__slot_count(p->threads);
}

static inline void pool_gradient_discard(void *pointer)
{
    plan *p = pointer;
    if (p != NULL)
        kernel_sum_free(&p->sum);
    free(p);
}

/* A plan on the heap, with its walk. */
static inline tutti_status pool_gradient_prepare(const tutti_kernel_query *query, const plan *made,
                                                 void **ret_plan)
{
    plan *p = malloc(sizeof *p);
    if (p == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the plan of '%s'", query->node.name);
    *p = *made;
    tutti_status status = kernel_sum_prepare(&p->layer.shape, &p->sum);
    if (status != TUTTI_OK)
        free(p);
    else
        *ret_plan = p;
    return status;
}

/* sum_piece sums a chunk into its part of work.partial. */
static inline tutti_status pool_gradient_run(const tutti_kernel_call *call,
                                             void (*sum_piece)(void *context, int64_t chunk))
{
    const plan *p = call->plan;
    const tutti_conv_layer_gradient *layer = &p->layer;
    const tutti_conv_windows *walk = p->sum.walk;
    float *padded = call->workspace;
    work w = {.plan = p,
              .y = call->inputs[layer->y].data,
              .grad = call->inputs[layer->grad].data,
              .partial = padded + walk->padded};
    tutti__slots_start(&w.slots, padded + before_slots(p, walk->padded), p->slot, p->threads);
    w.x = tutti__conv_pad(call, walk, call->inputs[layer->x].data, padded);
    tutti_parallel(call, p->sum.chunks, sum_piece, &w);
    kernel_sum_finish(call, &p->sum, w.partial, call->outputs[layer->kernel_grad].data,
                      layer->bias_grad < 0 ? NULL : call->outputs[layer->bias_grad].data);
    return TUTTI_OK;
}

#endif
