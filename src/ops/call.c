/* call.c: what a kernel asks of whoever runs it: memory for an output whose size depends on data.
 */
#include "ops/call.h"

#include "ops/build.h"

static tutti_status check_dims(const tutti_kernel_call *call, int index, int rank,
                               const int64_t *dims)
{
    int64_t bytes = (int64_t)tutti_dtype_size(call->outputs[index].dtype);
    if (rank < 0 || rank > TUTTI_MAX_RANK)
        return RULE_FAIL(call, TUTTI_INVALID, "output %d asks for %d dimensions, at most %d exist",
                         index, rank, TUTTI_MAX_RANK);
    if (rank > 0 && !dims)
        return RULE_FAIL(call, TUTTI_INVALID,
                         "output %d asks for %d dimensions, and the array of them is NULL", index,
                         rank);
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return RULE_FAIL(call, TUTTI_INVALID, "output %d asks for %lld along axis %d", index,
                             (long long)dims[i], i);
        if (!tutti__mul_size(bytes, dims[i] > 0 ? dims[i] : 1, &bytes))
            return RULE_FAIL(call, TUTTI_TOO_LARGE, "the size of output %d overflows 64 bits",
                             index);
    }
    return TUTTI_OK;
}

tutti_status tutti_kernel_call_allocate(const tutti_kernel_call *call, int index, int rank,
                                        const int64_t *dims)
{
    const tutti_call_host *host = call->context;
    if (index < 0 || index >= call->output_count)
        return RULE_FAIL(call, TUTTI_INTERNAL, "asks for memory of output %d, has %d outputs",
                         index, call->output_count);
    if (host == NULL || host->allocate == NULL)
        return RULE_FAIL(call, TUTTI_UNSUPPORTED,
                         "the shape of output %d depends on data, which this device cannot run; "
                         "place the node on a cpu",
                         index);
    TUTTI_TRY(check_dims(call, index, rank, dims));
    return host->allocate(call, index, rank, dims);
}
