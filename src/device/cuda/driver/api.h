/* api.h: what we use of NVIDIA's libraries, declared by ourselves: no header of theirs is needed to
 * build. declarations_check.c compares every number, size and prototype with the real headers where
 * there are some. A table of a library holds its functions by their own names:
 *
 *     libraries->driver.cuInit(0)
 */
#ifndef TUTTI_CUDA_API_H
#define TUTTI_CUDA_API_H

#ifndef TUTTI_CUDA_HANDLES_H
#include "device/cuda/driver/handles.h"
#endif

/* Name, our name, number. */
#define TUTTI_CU_CONSTANTS(X)                                                                      \
    X(CUDA_ERROR_OUT_OF_MEMORY, TUTTI_CU_OUT_OF_MEMORY, 2)                                         \
    X(CUDA_ERROR_NO_DEVICE, TUTTI_CU_NO_DEVICE, 100)                                               \
    X(CUDA_ERROR_NOT_READY, TUTTI_CU_NOT_READY, 600)                                               \
    X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, TUTTI_CU_MULTIPROCESSORS, 16)                      \
    X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, TUTTI_CU_L2_BYTES, 38)                                    \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, TUTTI_CU_CAPABILITY_MAJOR, 75)                 \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, TUTTI_CU_CAPABILITY_MINOR, 76)                 \
    X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, TUTTI_CU_SHARED_BYTES, 97)            \
    X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, TUTTI_CU_DYNAMIC_SHARED, 8)                 \
    X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, TUTTI_CU_LOCAL_BYTES, 3)                                 \
    X(CU_FUNC_ATTRIBUTE_NUM_REGS, TUTTI_CU_REGISTERS, 4)                                           \
    X(CU_EVENT_DISABLE_TIMING, TUTTI_CU_EVENT_NO_TIME, 2)                                          \
    X(CU_STREAM_NON_BLOCKING, TUTTI_CU_NON_BLOCKING, 1)                                            \
    X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, TUTTI_CU_CAPTURE_THREAD, 1)                             \
    X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, TUTTI_CU_POOL_KEEPS, 4)                                   \
    X(CU_GET_PROC_ADDRESS_DEFAULT, TUTTI_CU_PROC_DEFAULT, 0)

#define TUTTI_NVRTC_CONSTANTS(X) X(NVRTC_ERROR_COMPILATION, TUTTI_NVRTC_WRONG_SOURCE, 6)

#define TUTTI_BLAS_CONSTANTS(X)                                                                    \
    X(CUDA_R_32F, TUTTI_CUDA_R_32F, 0)                                                             \
    X(CUDA_R_16F, TUTTI_CUDA_R_16F, 2)                                                             \
    X(CUDA_R_16BF, TUTTI_CUDA_R_16BF, 14)                                                          \
    X(CUBLAS_COMPUTE_32F, TUTTI_BLAS_32F, 68)                                                      \
    X(CUBLAS_COMPUTE_32F_PEDANTIC, TUTTI_BLAS_32F_PEDANTIC, 69)                                    \
    X(CUBLAS_COMPUTE_32F_FAST_TF32, TUTTI_BLAS_TF32, 77)                                           \
    X(CUBLAS_OP_N, TUTTI_BLAS_PLAIN, 0)                                                            \
    X(CUBLAS_OP_T, TUTTI_BLAS_TRANSPOSED, 1)                                                       \
    X(CUBLASLT_MATMUL_DESC_TRANSA, TUTTI_BLAS_TRANSPOSE_A, 3)                                      \
    X(CUBLASLT_MATMUL_DESC_TRANSB, TUTTI_BLAS_TRANSPOSE_B, 4)                                      \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE, TUTTI_BLAS_EPILOGUE, 7)                                       \
    X(CUBLASLT_MATMUL_DESC_BIAS_POINTER, TUTTI_BLAS_BIAS_POINTER, 8)                               \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, TUTTI_BLAS_AUX_POINTER, 11)                       \
    X(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, TUTTI_BLAS_AUX_STRIDE, 12)                             \
    X(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, TUTTI_BLAS_BIAS_TYPE, 26)                               \
    X(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, TUTTI_BLAS_BATCH_COUNT, 5)                               \
    X(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, TUTTI_BLAS_BATCH_STRIDE, 6)                     \
    X(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, TUTTI_BLAS_WORKSPACE_BYTES, 1)                     \
    X(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, TUTTI_BLAS_REDUCTION_MASK, 3)                    \
    X(CUBLASLT_EPILOGUE_DEFAULT, TUTTI_BLAS_NONE, 1)                                               \
    X(CUBLASLT_EPILOGUE_BIAS, TUTTI_BLAS_BIAS, 4)                                                  \
    X(CUBLASLT_EPILOGUE_RELU, TUTTI_BLAS_RELU, 2)                                                  \
    X(CUBLASLT_EPILOGUE_RELU_BIAS, TUTTI_BLAS_RELU_BIAS, 6)                                        \
    X(CUBLASLT_EPILOGUE_RELU_AUX_BIAS, TUTTI_BLAS_RELU_AUX_BIAS, 134)                              \
    X(CUBLASLT_EPILOGUE_DRELU, TUTTI_BLAS_DRELU, 136)                                              \
    X(CUBLASLT_EPILOGUE_DRELU_BGRAD, TUTTI_BLAS_DRELU_BGRAD, 152)                                  \
    X(CUBLASLT_EPILOGUE_GELU_AUX, TUTTI_BLAS_GELU_AUX, 160)                                        \
    X(CUBLASLT_EPILOGUE_GELU_AUX_BIAS, TUTTI_BLAS_GELU_AUX_BIAS, 164)                              \
    X(CUBLASLT_EPILOGUE_DGELU, TUTTI_BLAS_DGELU, 192)                                              \
    X(CUBLASLT_EPILOGUE_DGELU_BGRAD, TUTTI_BLAS_DGELU_BGRAD, 208)                                  \
    X(CUBLASLT_EPILOGUE_BGRADA, TUTTI_BLAS_BGRADA, 256)                                            \
    X(CUBLASLT_EPILOGUE_BGRADB, TUTTI_BLAS_BGRADB, 512)

enum {
#define TUTTI_CU_ENUM(theirs, ours, number) ours = (number),
    TUTTI_CU_CONSTANTS(TUTTI_CU_ENUM) TUTTI_NVRTC_CONSTANTS(TUTTI_CU_ENUM)
        TUTTI_BLAS_CONSTANTS(TUTTI_CU_ENUM)
};

/* The driver's functions, as they are in version 12.0 (cuGetProcAddress gives that form of each).
 */
#define TUTTI_CU_VERSION 12000
#define TUTTI_CU_FUNCTIONS(X)                                                                      \
    X(tutti_cu_result, cuInit, (unsigned))                                                         \
    X(tutti_cu_result, cuDriverGetVersion, (int *))                                                \
    X(tutti_cu_result, cuGetErrorName, (tutti_cu_result, const char **))                           \
    X(tutti_cu_result, cuGetErrorString, (tutti_cu_result, const char **))                         \
    X(tutti_cu_result, cuDeviceGetCount, (int *))                                                  \
    X(tutti_cu_result, cuDeviceGet, (tutti_cu_device *, int))                                      \
    X(tutti_cu_result, cuDeviceGetName, (char *, int, tutti_cu_device))                            \
    X(tutti_cu_result, cuDeviceTotalMem, (size_t *, tutti_cu_device))                              \
    X(tutti_cu_result, cuDeviceGetAttribute, (int *, unsigned, tutti_cu_device))                   \
    X(tutti_cu_result, cuDevicePrimaryCtxRetain, (tutti_cu_context *, tutti_cu_device))            \
    X(tutti_cu_result, cuDevicePrimaryCtxRelease, (tutti_cu_device))                               \
    X(tutti_cu_result, cuCtxSetCurrent, (tutti_cu_context))                                        \
    X(tutti_cu_result, cuMemGetInfo, (size_t *, size_t *))                                         \
    X(tutti_cu_result, cuMemAlloc, (tutti_cu_pointer *, size_t))                                   \
    X(tutti_cu_result, cuMemFree, (tutti_cu_pointer))                                              \
    X(tutti_cu_result, cuMemAllocAsync, (tutti_cu_pointer *, size_t, tutti_cu_stream))             \
    X(tutti_cu_result, cuMemFreeAsync, (tutti_cu_pointer, tutti_cu_stream))                        \
    X(tutti_cu_result, cuDeviceGetDefaultMemPool, (tutti_cu_pool *, tutti_cu_device))              \
    X(tutti_cu_result, cuMemPoolSetAttribute, (tutti_cu_pool, unsigned, void *))                   \
    X(tutti_cu_result, cuMemPoolTrimTo, (tutti_cu_pool, size_t))                                   \
    X(tutti_cu_result, cuMemHostAlloc, (void **, size_t, unsigned))                                \
    X(tutti_cu_result, cuMemFreeHost, (void *))                                                    \
    X(tutti_cu_result, cuMemcpyHtoDAsync,                                                          \
      (tutti_cu_pointer, const void *, size_t, tutti_cu_stream))                                   \
    X(tutti_cu_result, cuMemcpyDtoHAsync, (void *, tutti_cu_pointer, size_t, tutti_cu_stream))     \
    X(tutti_cu_result, cuMemcpyDtoDAsync,                                                          \
      (tutti_cu_pointer, tutti_cu_pointer, size_t, tutti_cu_stream))                               \
    X(tutti_cu_result, cuMemsetD8Async,                                                            \
      (tutti_cu_pointer, unsigned char, size_t, tutti_cu_stream))                                  \
    X(tutti_cu_result, cuStreamCreate, (tutti_cu_stream *, unsigned))                              \
    X(tutti_cu_result, cuStreamDestroy, (tutti_cu_stream))                                         \
    X(tutti_cu_result, cuStreamSynchronize, (tutti_cu_stream))                                     \
    X(tutti_cu_result, cuStreamWaitEvent, (tutti_cu_stream, tutti_cu_event, unsigned))             \
    X(tutti_cu_result, cuStreamBeginCapture, (tutti_cu_stream, unsigned))                          \
    X(tutti_cu_result, cuStreamEndCapture, (tutti_cu_stream, tutti_cu_graph *))                    \
    X(tutti_cu_result, cuEventCreate, (tutti_cu_event *, unsigned))                                \
    X(tutti_cu_result, cuEventDestroy, (tutti_cu_event))                                           \
    X(tutti_cu_result, cuEventRecord, (tutti_cu_event, tutti_cu_stream))                           \
    X(tutti_cu_result, cuEventSynchronize, (tutti_cu_event))                                       \
    X(tutti_cu_result, cuEventElapsedTime, (float *, tutti_cu_event, tutti_cu_event))              \
    X(tutti_cu_result, cuModuleLoadData, (tutti_cu_module *, const void *))                        \
    X(tutti_cu_result, cuModuleUnload, (tutti_cu_module))                                          \
    X(tutti_cu_result, cuModuleGetFunction, (tutti_cu_function *, tutti_cu_module, const char *))  \
    X(tutti_cu_result, cuFuncGetAttribute, (int *, unsigned, tutti_cu_function))                   \
    X(tutti_cu_result, cuFuncSetAttribute, (tutti_cu_function, unsigned, int))                     \
    X(tutti_cu_result, cuLaunchKernel,                                                             \
      (tutti_cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,    \
       tutti_cu_stream, void **, void **))                                                         \
    X(tutti_cu_result, cuGraphInstantiateWithFlags,                                                \
      (tutti_cu_graph_exec *, tutti_cu_graph, unsigned long long))                                 \
    X(tutti_cu_result, cuGraphGetNodes, (tutti_cu_graph, tutti_cu_graph_node *, size_t *))         \
    X(tutti_cu_result, cuGraphLaunch, (tutti_cu_graph_exec, tutti_cu_stream))                      \
    X(tutti_cu_result, cuGraphExecDestroy, (tutti_cu_graph_exec))                                  \
    X(tutti_cu_result, cuGraphDestroy, (tutti_cu_graph))

#define TUTTI_NVRTC_FUNCTIONS(X)                                                                   \
    X(const char *, nvrtcGetErrorString, (tutti_nvrtc_result))                                     \
    X(tutti_nvrtc_result, nvrtcVersion, (int *, int *))                                            \
    X(tutti_nvrtc_result, nvrtcCreateProgram,                                                      \
      (tutti_nvrtc_program *, const char *, const char *, int, const char *const *,                \
       const char *const *))                                                                       \
    X(tutti_nvrtc_result, nvrtcDestroyProgram, (tutti_nvrtc_program *))                            \
    X(tutti_nvrtc_result, nvrtcCompileProgram, (tutti_nvrtc_program, int, const char *const *))    \
    X(tutti_nvrtc_result, nvrtcGetCUBINSize, (tutti_nvrtc_program, size_t *))                      \
    X(tutti_nvrtc_result, nvrtcGetCUBIN, (tutti_nvrtc_program, char *))                            \
    X(tutti_nvrtc_result, nvrtcGetProgramLogSize, (tutti_nvrtc_program, size_t *))                 \
    X(tutti_nvrtc_result, nvrtcGetProgramLog, (tutti_nvrtc_program, char *))

#define TUTTI_BLAS_FUNCTIONS(X)                                                                    \
    X(const char *, cublasLtGetStatusName, (tutti_blas_result))                                    \
    X(size_t, cublasLtGetVersion, (void))                                                          \
    X(tutti_blas_result, cublasLtCreate, (tutti_blas_handle *))                                    \
    X(tutti_blas_result, cublasLtDestroy, (tutti_blas_handle))                                     \
    X(tutti_blas_result, cublasLtMatmulDescCreate, (tutti_blas_product *, unsigned, unsigned))     \
    X(tutti_blas_result, cublasLtMatmulDescDestroy, (tutti_blas_product))                          \
    X(tutti_blas_result, cublasLtMatmulDescSetAttribute,                                           \
      (tutti_blas_product, unsigned, const void *, size_t))                                        \
    X(tutti_blas_result, cublasLtMatrixLayoutCreate,                                               \
      (tutti_blas_layout *, unsigned, uint64_t, uint64_t, int64_t))                                \
    X(tutti_blas_result, cublasLtMatrixLayoutDestroy, (tutti_blas_layout))                         \
    X(tutti_blas_result, cublasLtMatrixLayoutSetAttribute,                                         \
      (tutti_blas_layout, unsigned, const void *, size_t))                                         \
    X(tutti_blas_result, cublasLtMatmulPreferenceCreate, (tutti_blas_preference *))                \
    X(tutti_blas_result, cublasLtMatmulPreferenceDestroy, (tutti_blas_preference))                 \
    X(tutti_blas_result, cublasLtMatmulPreferenceSetAttribute,                                     \
      (tutti_blas_preference, unsigned, const void *, size_t))                                     \
    X(tutti_blas_result, cublasLtMatmulAlgoGetHeuristic,                                           \
      (tutti_blas_handle, tutti_blas_product, tutti_blas_layout, tutti_blas_layout,                \
       tutti_blas_layout, tutti_blas_layout, tutti_blas_preference, int, tutti_blas_heuristic *,   \
       int *))                                                                                     \
    X(tutti_blas_result, cublasLtMatmul,                                                           \
      (tutti_blas_handle, tutti_blas_product, const void *, const void *, tutti_blas_layout,       \
       const void *, tutti_blas_layout, const void *, const void *, tutti_blas_layout, void *,     \
       tutti_blas_layout, const tutti_blas_algorithm *, void *, size_t, tutti_cu_stream))

#define TUTTI_DNN_FUNCTIONS(X)                                                                     \
    X(size_t, cudnnGetVersion, (void))                                                             \
    X(size_t, cudnnGetCudartVersion, (void))                                                       \
    X(const char *, cudnnGetErrorString, (tutti_dnn_result))                                       \
    X(void, cudnnGetLastErrorString, (char *, size_t))                                             \
    X(tutti_dnn_result, cudnnCreate, (tutti_dnn_handle *))                                         \
    X(tutti_dnn_result, cudnnDestroy, (tutti_dnn_handle))                                          \
    X(tutti_dnn_result, cudnnSetStream, (tutti_dnn_handle, tutti_cu_stream))                       \
    X(tutti_dnn_result, cudnnBackendCreateDescriptor, (unsigned, tutti_dnn_descriptor *))          \
    X(tutti_dnn_result, cudnnBackendDestroyDescriptor, (tutti_dnn_descriptor))                     \
    X(tutti_dnn_result, cudnnBackendSetAttribute,                                                  \
      (tutti_dnn_descriptor, unsigned, unsigned, int64_t, const void *))                           \
    X(tutti_dnn_result, cudnnBackendGetAttribute,                                                  \
      (tutti_dnn_descriptor const, unsigned, unsigned, int64_t, int64_t *, void *))                \
    X(tutti_dnn_result, cudnnBackendFinalize, (tutti_dnn_descriptor))                              \
    X(tutti_dnn_result, cudnnBackendExecute,                                                       \
      (tutti_dnn_handle, tutti_dnn_descriptor, tutti_dnn_descriptor))

#define TUTTI_CUDA_MEMBER(result, name, parameters) result(*name) parameters;
typedef struct tutti_cu_driver {
    TUTTI_CU_FUNCTIONS(TUTTI_CUDA_MEMBER)
} tutti_cu_driver;
typedef struct tutti_nvrtc {
    TUTTI_NVRTC_FUNCTIONS(TUTTI_CUDA_MEMBER)
} tutti_nvrtc;
typedef struct tutti_blas {
    TUTTI_BLAS_FUNCTIONS(TUTTI_CUDA_MEMBER)
} tutti_blas;
typedef struct tutti_dnn {
    TUTTI_DNN_FUNCTIONS(TUTTI_CUDA_MEMBER)
} tutti_dnn;

#endif
