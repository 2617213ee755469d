/* declarations_check.c: our declarations beside NVIDIA's headers. Compiled, and never linked into
 * anything, where the headers are. */
#include <cublasLt.h>
#include <cuda.h>
#include <cudnn.h>
#include <nvrtc.h>

/* The form of version 12.0; the headers of 13 name a newer one. */
#undef cuEventElapsedTime
CUresult CUDAAPI cuEventElapsedTime(float *pMilliseconds, CUevent hStart, CUevent hEnd);

/* Their types under our names: every prototype in api.h is then made of the real ones. */
#define TUTTI_CUDA_HANDLES_H
typedef CUresult tutti_cu_result;
typedef CUdevice tutti_cu_device;
typedef CUdeviceptr tutti_cu_pointer;
typedef CUcontext tutti_cu_context;
typedef CUmodule tutti_cu_module;
typedef CUfunction tutti_cu_function;
typedef CUstream tutti_cu_stream;
typedef CUevent tutti_cu_event;
typedef CUmemoryPool tutti_cu_pool;
typedef CUgraph tutti_cu_graph;
typedef CUgraphNode tutti_cu_graph_node;
typedef CUgraphExec tutti_cu_graph_exec;
typedef nvrtcResult tutti_nvrtc_result;
typedef nvrtcProgram tutti_nvrtc_program;
typedef cublasStatus_t tutti_blas_result;
typedef cublasLtHandle_t tutti_blas_handle;
typedef cublasLtMatmulDesc_t tutti_blas_product;
typedef cublasLtMatrixLayout_t tutti_blas_layout;
typedef cublasLtMatmulPreference_t tutti_blas_preference;
typedef cublasLtMatmulAlgo_t tutti_blas_algorithm;
typedef cublasLtMatmulHeuristicResult_t tutti_blas_heuristic;
typedef cudnnStatus_t tutti_dnn_result;
typedef cudnnHandle_t tutti_dnn_handle;
typedef cudnnBackendDescriptor_t tutti_dnn_descriptor;

#include "device/cuda/dnn/constants.h"
#include "device/cuda/driver/api.h"

#define CHECK_CONSTANT(theirs, ours, number)                                                       \
    _Static_assert((long long)(theirs) == (number), #theirs);
TUTTI_CU_CONSTANTS(CHECK_CONSTANT)
TUTTI_NVRTC_CONSTANTS(CHECK_CONSTANT)
TUTTI_BLAS_CONSTANTS(CHECK_CONSTANT)
TUTTI_DNN_CONSTANTS(CHECK_CONSTANT)

const tutti_cu_driver tutti_check_driver = {
#define CHECK_FUNCTION(result, name, parameters) .name = name,
    TUTTI_CU_FUNCTIONS(CHECK_FUNCTION)};
const tutti_nvrtc tutti_check_nvrtc = {TUTTI_NVRTC_FUNCTIONS(CHECK_FUNCTION)};
const tutti_blas tutti_check_blas = {TUTTI_BLAS_FUNCTIONS(CHECK_FUNCTION)};
const tutti_dnn tutti_check_dnn = {TUTTI_DNN_FUNCTIONS(CHECK_FUNCTION)};

/* handles.h itself, under other names, for what we lay out ourselves. */
#undef TUTTI_CUDA_HANDLES_H
#define tutti_blas_algorithm our_algorithm
#define tutti_blas_heuristic our_heuristic
#define tutti_cu_pointer our_pointer
#define tutti_cu_device our_device
#define tutti_cu_result our_result
#define tutti_nvrtc_result our_nvrtc_result
#define tutti_blas_result our_blas_result
#define tutti_dnn_result our_dnn_result
#define tutti_dnn_descriptor our_descriptor
#define tutti_cu_context our_context
#define tutti_cu_module our_module
#define tutti_cu_function our_function
#define tutti_cu_stream our_stream
#define tutti_cu_event our_event
#define tutti_cu_pool our_pool
#define tutti_cu_graph our_graph
#define tutti_cu_graph_node our_graph_node
#define tutti_cu_graph_exec our_graph_exec
#define tutti_nvrtc_program our_program
#define tutti_blas_handle our_blas_handle
#define tutti_blas_product our_product
#define tutti_blas_layout our_layout
#define tutti_blas_preference our_preference
#define tutti_dnn_handle our_dnn_handle
#include "device/cuda/driver/handles.h"

_Static_assert(sizeof(our_algorithm) == sizeof(cublasLtMatmulAlgo_t), "algorithm");
_Static_assert(sizeof(our_heuristic) == sizeof(cublasLtMatmulHeuristicResult_t), "heuristic");
_Static_assert(offsetof(our_heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state),
               "state of a heuristic");
_Static_assert(sizeof(our_pointer) == sizeof(CUdeviceptr), "pointer");
_Static_assert(sizeof(our_device) == sizeof(CUdevice), "device");
_Static_assert(sizeof(our_result) == sizeof(CUresult), "result");
