/* call.h: what stands behind a tutti_kernel_call. Whoever runs kernels (the reference interpreter,
 * a device) lets call->context point at a struct that begins with tutti_call_host. */
#ifndef TUTTI_OPS_CALL_H
#define TUTTI_OPS_CALL_H

#include <stdatomic.h>

#include "tutti/op.h"

typedef struct tutti_call_host {
    /* Behind tutti_kernel_call_allocate: memory for output `index`, whose dimensions are now known;
     * fills call->outputs[index]. The dimensions were checked: rank in range, none negative, the
     * size in bytes fits 64 bits. NULL: no output of this runner's kernels may depend on data. */
    tutti_status (*allocate)(const tutti_kernel_call *call, int index, int rank,
                             const int64_t *dims);
    /* (optional) Output `index` becomes this host tensor, which is retained or copied (strings
     * deeply); its type fits the output's. For kernels that get finished tensors from elsewhere
     * (queues). NULL: they copy into the output's memory, and cannot give strings. */
    tutti_status (*give)(const tutti_kernel_call *call, int index, tutti_tensor *tensor);
    /* (optional) Input `index` as a tensor of its own, pending where its bytes stand, or will
     * stand, in the device's memory. For kernels that pass values on. NULL: they copy the view. */
    tutti_status (*take)(const tutti_kernel_call *call, int index, tutti_tensor **ret);
    /* (optional) Turns true when the run has failed elsewhere: kernels that wait then stop. */
    const atomic_bool *cancelled;
} tutti_call_host;

#endif
