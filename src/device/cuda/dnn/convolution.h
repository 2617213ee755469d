/* convolution.h: convolutions in two dimensions by cuDNN, channels last: x [batch, height, width,
 * in], w [out, kernel_h, kernel_w, in], y [batch, out_h, out_w, out]. */
#ifndef TUTTI_CUDA_CONVOLUTION_H
#define TUTTI_CUDA_CONVOLUTION_H

#include "device/cuda/dnn/graph.h"

typedef enum tutti_cuda_convolution_kind {
    TUTTI_CUDA_CONVOLUTION_FORWARD,
    TUTTI_CUDA_CONVOLUTION_DATA,   /* dx from dy and w */
    TUTTI_CUDA_CONVOLUTION_FILTER, /* dw from x and dy */
} tutti_cuda_convolution_kind;

typedef struct tutti_cuda_convolution {
    tutti_cuda_type type;
    tutti_cuda_convolution_kind kind;
    bool deterministic;
    bool tf32; /* f32 may be rounded so */
    int64_t batch, height, width, in, out;
    int64_t kernel[2], stride[2], dilation[2], before[2], after[2]; /* padding of each side */
} tutti_cuda_convolution;

/* Height and width of y. */
void tutti__cuda_convolution_size(const tutti_cuda_convolution *c, int64_t ret[2]);

/* Makes the plan, in f32 arithmetic; tutti__cuda_graph_free takes it back. */
tutti_status tutti__cuda_convolution_plan(const tutti_dnn *dnn, tutti_dnn_handle handle,
                                          const tutti_cuda_convolution *c,
                                          tutti_cuda_graph *ret_graph);
/* One of x, w, y is written: the one of the plan's kind. */
tutti_status tutti__cuda_convolution_run(const tutti_cuda_graph *graph, tutti_cu_stream stream,
                                         tutti_cu_pointer x, tutti_cu_pointer w, tutti_cu_pointer y,
                                         tutti_cu_pointer workspace);

#endif
