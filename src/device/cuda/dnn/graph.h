/* graph.h: operation graphs of cuDNN, through its backend interface in C: tensors and operations
 * with attributes, a graph of them, and a plan chosen for it. */
#ifndef TUTTI_CUDA_DNN_GRAPH_H
#define TUTTI_CUDA_DNN_GRAPH_H

#include "device/cuda/dnn/constants.h"
#include "device/cuda/driver/load.h"
#include "device/cuda/kernels/kernels.h"

enum { TUTTI_CUDA_DNN_TENSORS = 48, TUTTI_CUDA_DNN_RANK = 5 };

/* A graph while it is built, and its plan. The first failure sticks; later calls do nothing. */
typedef struct tutti_cuda_graph {
    const tutti_dnn *dnn;
    tutti_dnn_handle handle;
    tutti_status status;
    tutti_error error;
    tutti_dnn_descriptor all[256]; /* every descriptor, to be destroyed */
    int count;
    tutti_dnn_descriptor operations[48];
    int operation_count;
    tutti_dnn_descriptor plan;
    int64_t workspace; /* bytes the plan needs */
    int64_t engine;    /* its number, for the curious */
    int refused;       /* engines that could not be planned before it */
} tutti_cuda_graph;

typedef struct tutti_cuda_dnn_tensor {
    unsigned type; /* TUTTI_DNN_DATA_FLOAT and so on */
    int rank;
    int64_t dims[TUTTI_CUDA_DNN_RANK], strides[TUTTI_CUDA_DNN_RANK];
    int64_t id; /* its address comes under this number */
    bool inner; /* never in memory */
    bool value; /* one number, given by value */
} tutti_cuda_dnn_tensor;

tutti_status tutti__cuda_graph_begin(const tutti_dnn *dnn, tutti_dnn_handle handle,
                                     tutti_cuda_graph *graph);
void tutti__cuda_graph_free(tutti_cuda_graph *graph); /* a half-built one too */

/* A descriptor that is filled by tutti__cuda_graph_set and closed by _close. */
tutti_dnn_descriptor tutti__cuda_graph_open(tutti_cuda_graph *graph, unsigned kind);
void tutti__cuda_graph_set(tutti_cuda_graph *graph, tutti_dnn_descriptor descriptor,
                           unsigned attribute, unsigned type, int64_t count, const void *values);
void tutti__cuda_graph_close(tutti_cuda_graph *graph, tutti_dnn_descriptor descriptor);
tutti_dnn_descriptor tutti__cuda_graph_tensor(tutti_cuda_graph *graph,
                                              const tutti_cuda_dnn_tensor *tensor);
void tutti__cuda_graph_operation(tutti_cuda_graph *graph, tutti_dnn_descriptor operation);

/* y = mode(x, b, t); b and t may be NULL. Computed in f32, indices in i32. */
void tutti__cuda_graph_pointwise(tutti_cuda_graph *graph, unsigned mode, tutti_dnn_descriptor x,
                                 tutti_dnn_descriptor b, tutti_dnn_descriptor t,
                                 tutti_dnn_descriptor y, int64_t axis);
void tutti__cuda_graph_matmul(tutti_cuda_graph *graph, tutti_dnn_descriptor a,
                              tutti_dnn_descriptor b, tutti_dnn_descriptor c);
void tutti__cuda_graph_reduce(tutti_cuda_graph *graph, unsigned operator, tutti_dnn_descriptor x,
                              tutti_dnn_descriptor y);

/* Asks for engines and plans the first that can be and that says none of what is refused: one bit
 * for each numerical note, 1 << TUTTI_DNN_NONDETERMINISTIC and so on. */
tutti_status tutti__cuda_graph_plan(tutti_cuda_graph *graph, unsigned refused);
tutti_status tutti__cuda_graph_run(const tutti_cuda_graph *graph, tutti_cu_stream stream, int count,
                                   const int64_t *ids, void *const *addresses,
                                   tutti_cu_pointer workspace);

tutti_status tutti__cuda_dnn_check(const tutti_dnn *dnn, tutti_dnn_result result, const char *what);

#endif
