/* dnn.h: cuDNN on one device: its handle, and the plans that were made. */
#ifndef TUTTI_CUDA_OPERATORS_DNN_H
#define TUTTI_CUDA_OPERATORS_DNN_H

#include "device/cuda/dnn/attention.h"
#include "device/cuda/dnn/convolution.h"

struct tutti_cuda_dnn_plans;

typedef struct tutti_cuda_dnn {
    const tutti_dnn *api;
    tutti_dnn_handle handle;
    struct tutti_cuda_dnn_plans *plans;
} tutti_cuda_dnn;

/* TUTTI_UNSUPPORTED where it is not installed. */
tutti_status tutti__cuda_dnn_open(tutti_cuda_device *device, const tutti_cuda_dnn **ret);
void tutti__cuda_dnn_close(const tutti_cuda_dnn *dnn); /* NULL is fine */

/* The plan for a convolution, made or remembered, also that there is none (TUTTI_UNSUPPORTED).
 * `convolution` is a key: clear it before it is filled. Threads may call this at once. */
tutti_status tutti__cuda_dnn_convolution(const tutti_cuda_dnn *dnn,
                                         const tutti_cuda_convolution *convolution,
                                         const tutti_cuda_graph **ret);
/* The same of attention, or of its gradient. */
tutti_status tutti__cuda_dnn_attention(const tutti_cuda_dnn *dnn,
                                       const tutti_cuda_attention *attention, bool gradient,
                                       const tutti_cuda_graph **ret);

/* Work space, enough for each plan that was made; the next plan may move it. */
tutti_cu_pointer tutti__cuda_dnn_workspace(const tutti_cuda_dnn *dnn);

#endif
