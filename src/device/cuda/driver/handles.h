/* handles.h: NVIDIA's opaque handles. Apart from api.h, so that the check of our declarations
 * (declarations_check.c) can put the real types in their place. */
#ifndef TUTTI_CUDA_HANDLES_H
#define TUTTI_CUDA_HANDLES_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned tutti_cu_result; /* CUresult; 0 is success */
typedef int tutti_cu_device;
typedef unsigned long long tutti_cu_pointer; /* an address in a device's memory */
typedef struct tutti_cu_context_s *tutti_cu_context;
typedef struct tutti_cu_module_s *tutti_cu_module;
typedef struct tutti_cu_function_s *tutti_cu_function;
typedef struct tutti_cu_stream_s *tutti_cu_stream;
typedef struct tutti_cu_event_s *tutti_cu_event;
typedef struct tutti_cu_pool_s *tutti_cu_pool; /* CUmemoryPool */
typedef struct tutti_cu_graph_s *tutti_cu_graph;
typedef struct tutti_cu_graph_node_s *tutti_cu_graph_node;
typedef struct tutti_cu_graph_exec_s *tutti_cu_graph_exec;

typedef unsigned tutti_nvrtc_result;
typedef struct tutti_nvrtc_program_s *tutti_nvrtc_program;

typedef unsigned tutti_blas_result;
typedef struct tutti_blas_handle_s *tutti_blas_handle;
typedef struct tutti_blas_product_s *tutti_blas_product; /* cublasLtMatmulDesc_t */
typedef struct tutti_blas_layout_s *tutti_blas_layout;   /* cublasLtMatrixLayout_t */
typedef struct tutti_blas_preference_s *tutti_blas_preference;
typedef struct tutti_blas_algorithm {
    uint64_t data[8];
} tutti_blas_algorithm;
typedef struct tutti_blas_heuristic {
    tutti_blas_algorithm algo;
    size_t workspaceSize;
    tutti_blas_result state;
    float wavesCount;
    int reserved[4];
} tutti_blas_heuristic;

typedef unsigned tutti_dnn_result;
typedef struct tutti_dnn_handle_s *tutti_dnn_handle;
typedef void *tutti_dnn_descriptor;

#endif
