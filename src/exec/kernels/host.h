/* host.h: what the kernels that the runner itself provides share. They see host memory on every
 * device. */
#ifndef TUTTI_EXEC_KERNELS_HOST_H
#define TUTTI_EXEC_KERNELS_HOST_H

#include "program/kernel.h"
#include "program/target.h"

static inline tutti_context *tutti__context(const tutti_kernel_call *call)
{
    return call->context;
}

/* Only bid for their operator: any node of it. */
int tutti__host_score(const tutti_kernel_query *query);

/* A tensor over an input's memory, valid during the call; the caller releases it. */
tutti_status tutti__borrow_input(const tutti_kernel_call *call, int index, tutti_tensor **ret);
/* A copy that outlives the call. */
tutti_status tutti__copy_input(const tutti_kernel_call *call, int index, tutti_tensor **ret);
/* Writes a tensor into an output, which takes its shape where that was not known. */
tutti_status tutti__fill_output(const tutti_kernel_call *call, int index, tutti_tensor *value);

#endif
