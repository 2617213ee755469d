/* dnn.h: cuDNN on one device: its handle, and the plans that were made. */
#ifndef TUTTI_CUDA_OPERATORS_DNN_H
#define TUTTI_CUDA_OPERATORS_DNN_H

#include "device/cuda/dnn/graph.h"

typedef struct tutti_cuda_dnn {
    const tutti_dnn *api;
    tutti_dnn_handle handle;
} tutti_cuda_dnn;

/* TUTTI_UNSUPPORTED where it is not installed. */
tutti_status tutti__cuda_dnn_open(tutti_cuda_device *device, const tutti_cuda_dnn **ret);
void tutti__cuda_dnn_close(const tutti_cuda_dnn *dnn); /* NULL is fine */

#endif
