/* dnn.c: see dnn.h. */
#include "device/cuda/operators/dnn.h"

#include <stdlib.h>

tutti_status tutti__cuda_dnn_open(tutti_cuda_device *device, const tutti_cuda_dnn **ret)
{
    const tutti_dnn *api;
    tutti_dnn_handle handle;
    (void)device; /* its context is the caller's */
    TUTTI_TRY(tutti__cuda_dnn(&api));
    TUTTI_TRY(tutti__cuda_dnn_check(api, api->cudnnCreate(&handle), "a handle"));
    tutti_cuda_dnn *dnn = malloc(sizeof *dnn);
    if (!dnn) {
        (void)api->cudnnDestroy(handle);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for cuDNN's handle");
    }
    *dnn = (tutti_cuda_dnn){api, handle};
    *ret = dnn;
    return TUTTI_OK;
}

void tutti__cuda_dnn_close(const tutti_cuda_dnn *dnn)
{
    if (!dnn)
        return;
    (void)dnn->api->cudnnDestroy(dnn->handle);
    free((void *)(uintptr_t)dnn);
}
