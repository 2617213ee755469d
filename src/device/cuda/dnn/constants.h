/* constants.h: numbers of cuDNN's backend interface: theirs, ours, number. Compared with the real
 * header by driver/declarations_check.c. Ours leave out what all share: TUTTI_DNN_<attribute>,
 * TUTTI_DNN_TYPE_<type of an attribute>, TUTTI_DNN_A_<kind of descriptor>, and for pointwise modes
 * their names. */
#ifndef TUTTI_CUDA_DNN_CONSTANTS_H
#define TUTTI_CUDA_DNN_CONSTANTS_H

#define TUTTI_DNN_CONSTANTS(X)                                                                     \
    X(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, TUTTI_DNN_TENSOR_BYTE_ALIGNMENT, 900)                      \
    X(CUDNN_ATTR_TENSOR_DATA_TYPE, TUTTI_DNN_TENSOR_DATA_TYPE, 901)                                \
    X(CUDNN_ATTR_TENSOR_DIMENSIONS, TUTTI_DNN_TENSOR_DIMENSIONS, 902)                              \
    X(CUDNN_ATTR_TENSOR_STRIDES, TUTTI_DNN_TENSOR_STRIDES, 903)                                    \
    X(CUDNN_ATTR_TENSOR_UNIQUE_ID, TUTTI_DNN_TENSOR_UNIQUE_ID, 906)                                \
    X(CUDNN_ATTR_TENSOR_IS_VIRTUAL, TUTTI_DNN_TENSOR_IS_VIRTUAL, 907)                              \
    X(CUDNN_ATTR_TENSOR_IS_BY_VALUE, TUTTI_DNN_TENSOR_IS_BY_VALUE, 908)                            \
    X(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, TUTTI_DNN_CONVOLUTION_COMP_TYPE, 100)                      \
    X(CUDNN_ATTR_CONVOLUTION_CONV_MODE, TUTTI_DNN_CONVOLUTION_CONV_MODE, 101)                      \
    X(CUDNN_ATTR_CONVOLUTION_DILATIONS, TUTTI_DNN_CONVOLUTION_DILATIONS, 102)                      \
    X(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, TUTTI_DNN_CONVOLUTION_FILTER_STRIDES, 103)            \
    X(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, TUTTI_DNN_CONVOLUTION_POST_PADDINGS, 104)              \
    X(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, TUTTI_DNN_CONVOLUTION_PRE_PADDINGS, 105)                \
    X(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, TUTTI_DNN_CONVOLUTION_SPATIAL_DIMS, 106)                \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,                                              \
      TUTTI_DNN_OPERATION_CONVOLUTION_FORWARD_ALPHA, 700)                                          \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, TUTTI_DNN_OPERATION_CONVOLUTION_FORWARD_BETA, \
      701)                                                                                         \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,                                          \
      TUTTI_DNN_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 702)                                      \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, TUTTI_DNN_OPERATION_CONVOLUTION_FORWARD_W, 703)  \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, TUTTI_DNN_OPERATION_CONVOLUTION_FORWARD_X, 704)  \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, TUTTI_DNN_OPERATION_CONVOLUTION_FORWARD_Y, 705)  \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,                                             \
      TUTTI_DNN_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 706)                                         \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,                                              \
      TUTTI_DNN_OPERATION_CONVOLUTION_BWD_DATA_BETA, 707)                                          \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,                                         \
      TUTTI_DNN_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, 708)                                     \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, TUTTI_DNN_OPERATION_CONVOLUTION_BWD_DATA_W,     \
      709)                                                                                         \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, TUTTI_DNN_OPERATION_CONVOLUTION_BWD_DATA_DX,   \
      710)                                                                                         \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, TUTTI_DNN_OPERATION_CONVOLUTION_BWD_DATA_DY,   \
      711)                                                                                         \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,                                           \
      TUTTI_DNN_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 712)                                       \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,                                            \
      TUTTI_DNN_OPERATION_CONVOLUTION_BWD_FILTER_BETA, 713)                                        \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,                                       \
      TUTTI_DNN_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, 714)                                   \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,                                              \
      TUTTI_DNN_OPERATION_CONVOLUTION_BWD_FILTER_DW, 715)                                          \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, TUTTI_DNN_OPERATION_CONVOLUTION_BWD_FILTER_X, \
      716)                                                                                         \
    X(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,                                              \
      TUTTI_DNN_OPERATION_CONVOLUTION_BWD_FILTER_DY, 717)                                          \
    X(CUDNN_ATTR_POINTWISE_MODE, TUTTI_DNN_POINTWISE_MODE, 0)                                      \
    X(CUDNN_ATTR_POINTWISE_MATH_PREC, TUTTI_DNN_POINTWISE_MATH_PREC, 1)                            \
    X(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, TUTTI_DNN_OPERATION_POINTWISE_PW_DESCRIPTOR,   \
      750)                                                                                         \
    X(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, TUTTI_DNN_OPERATION_POINTWISE_XDESC, 751)              \
    X(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, TUTTI_DNN_OPERATION_POINTWISE_BDESC, 752)              \
    X(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, TUTTI_DNN_OPERATION_POINTWISE_YDESC, 753)              \
    X(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, TUTTI_DNN_OPERATION_POINTWISE_TDESC, 758)              \
    X(CUDNN_ATTR_POINTWISE_AXIS, TUTTI_DNN_POINTWISE_AXIS, 9)                                      \
    X(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, TUTTI_DNN_OPERATION_RESHAPE_XDESC, 2200)                 \
    X(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, TUTTI_DNN_OPERATION_RESHAPE_YDESC, 2201)                 \
    X(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, TUTTI_DNN_A_OPERATION_RESHAPE, 31)               \
    X(CUDNN_ATTR_MATMUL_COMP_TYPE, TUTTI_DNN_MATMUL_COMP_TYPE, 1500)                               \
    X(CUDNN_ATTR_MATMUL_PADDING_VALUE, TUTTI_DNN_MATMUL_PADDING_VALUE, 1503)                       \
    X(CUDNN_ATTR_OPERATION_MATMUL_ADESC, TUTTI_DNN_OPERATION_MATMUL_ADESC, 1520)                   \
    X(CUDNN_ATTR_OPERATION_MATMUL_BDESC, TUTTI_DNN_OPERATION_MATMUL_BDESC, 1521)                   \
    X(CUDNN_ATTR_OPERATION_MATMUL_CDESC, TUTTI_DNN_OPERATION_MATMUL_CDESC, 1522)                   \
    X(CUDNN_ATTR_OPERATION_MATMUL_DESC, TUTTI_DNN_OPERATION_MATMUL_DESC, 1523)                     \
    X(CUDNN_ATTR_REDUCTION_OPERATOR, TUTTI_DNN_REDUCTION_OPERATOR, 1600)                           \
    X(CUDNN_ATTR_REDUCTION_COMP_TYPE, TUTTI_DNN_REDUCTION_COMP_TYPE, 1601)                         \
    X(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, TUTTI_DNN_OPERATION_REDUCTION_XDESC, 1610)             \
    X(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, TUTTI_DNN_OPERATION_REDUCTION_YDESC, 1611)             \
    X(CUDNN_ATTR_OPERATION_REDUCTION_DESC, TUTTI_DNN_OPERATION_REDUCTION_DESC, 1612)               \
    X(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, TUTTI_DNN_OPERATIONGRAPH_HANDLE, 800)                      \
    X(CUDNN_ATTR_OPERATIONGRAPH_OPS, TUTTI_DNN_OPERATIONGRAPH_OPS, 801)                            \
    X(CUDNN_ATTR_ENGINEHEUR_MODE, TUTTI_DNN_ENGINEHEUR_MODE, 200)                                  \
    X(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, TUTTI_DNN_ENGINEHEUR_OPERATION_GRAPH, 201)            \
    X(CUDNN_ATTR_ENGINEHEUR_RESULTS, TUTTI_DNN_ENGINEHEUR_RESULTS, 202)                            \
    X(CUDNN_ATTR_ENGINECFG_ENGINE, TUTTI_DNN_ENGINECFG_ENGINE, 300)                                \
    X(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, TUTTI_DNN_ENGINE_NUMERICAL_NOTE, 1303)                     \
    X(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, TUTTI_DNN_ENGINE_GLOBAL_INDEX, 1301)                         \
    X(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, TUTTI_DNN_ENGINE_BEHAVIOR_NOTE, 1305)                       \
    X(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, TUTTI_DNN_EXECUTION_PLAN_HANDLE, 400)                      \
    X(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, TUTTI_DNN_EXECUTION_PLAN_ENGINE_CONFIG, 401)        \
    X(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, TUTTI_DNN_EXECUTION_PLAN_WORKSPACE_SIZE, 402)      \
    X(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, TUTTI_DNN_VARIANT_PACK_UNIQUE_IDS, 1000)                 \
    X(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, TUTTI_DNN_VARIANT_PACK_DATA_POINTERS, 1001)           \
    X(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, TUTTI_DNN_VARIANT_PACK_WORKSPACE, 1003)                   \
    X(CUDNN_TYPE_HANDLE, TUTTI_DNN_TYPE_HANDLE, 0)                                                 \
    X(CUDNN_TYPE_DATA_TYPE, TUTTI_DNN_TYPE_DATA_TYPE, 1)                                           \
    X(CUDNN_TYPE_BOOLEAN, TUTTI_DNN_TYPE_BOOLEAN, 2)                                               \
    X(CUDNN_TYPE_INT64, TUTTI_DNN_TYPE_INT64, 3)                                                   \
    X(CUDNN_TYPE_FLOAT, TUTTI_DNN_TYPE_FLOAT, 4)                                                   \
    X(CUDNN_TYPE_DOUBLE, TUTTI_DNN_TYPE_DOUBLE, 5)                                                 \
    X(CUDNN_TYPE_VOID_PTR, TUTTI_DNN_TYPE_VOID_PTR, 6)                                             \
    X(CUDNN_TYPE_CONVOLUTION_MODE, TUTTI_DNN_TYPE_CONVOLUTION_MODE, 7)                             \
    X(CUDNN_TYPE_HEUR_MODE, TUTTI_DNN_TYPE_HEUR_MODE, 8)                                           \
    X(CUDNN_TYPE_NUMERICAL_NOTE, TUTTI_DNN_TYPE_NUMERICAL_NOTE, 11)                                \
    X(CUDNN_TYPE_POINTWISE_MODE, TUTTI_DNN_TYPE_POINTWISE_MODE, 14)                                \
    X(CUDNN_TYPE_BACKEND_DESCRIPTOR, TUTTI_DNN_TYPE_BACKEND_DESCRIPTOR, 15)                        \
    X(CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, TUTTI_DNN_TYPE_REDUCTION_OPERATOR_TYPE, 18)              \
    X(CUDNN_TYPE_BEHAVIOR_NOTE, TUTTI_DNN_TYPE_BEHAVIOR_NOTE, 19)                                  \
    X(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, TUTTI_DNN_A_POINTWISE, 0)                                \
    X(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, TUTTI_DNN_A_CONVOLUTION, 1)                            \
    X(CUDNN_BACKEND_ENGINE_DESCRIPTOR, TUTTI_DNN_A_ENGINE, 2)                                      \
    X(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, TUTTI_DNN_A_ENGINECFG, 3)                                \
    X(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, TUTTI_DNN_A_ENGINEHEUR, 4)                              \
    X(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, TUTTI_DNN_A_EXECUTION_PLAN, 5)                      \
    X(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,                                      \
      TUTTI_DNN_A_OPERATION_CONVOLUTION_FORWARD, 10)                                               \
    X(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,                              \
      TUTTI_DNN_A_OPERATION_CONVOLUTION_BACKWARD_FILTER, 11)                                       \
    X(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,                                \
      TUTTI_DNN_A_OPERATION_CONVOLUTION_BACKWARD_DATA, 12)                                         \
    X(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, TUTTI_DNN_A_OPERATION_POINTWISE, 13)           \
    X(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, TUTTI_DNN_A_OPERATIONGRAPH, 15)                     \
    X(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, TUTTI_DNN_A_VARIANT_PACK, 16)                         \
    X(CUDNN_BACKEND_TENSOR_DESCRIPTOR, TUTTI_DNN_A_TENSOR, 17)                                     \
    X(CUDNN_BACKEND_MATMUL_DESCRIPTOR, TUTTI_DNN_A_MATMUL, 18)                                     \
    X(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, TUTTI_DNN_A_OPERATION_MATMUL, 19)                 \
    X(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, TUTTI_DNN_A_REDUCTION, 21)                               \
    X(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, TUTTI_DNN_A_OPERATION_REDUCTION, 22)           \
    X(CUDNN_POINTWISE_ADD, TUTTI_DNN_ADD, 0)                                                       \
    X(CUDNN_POINTWISE_MUL, TUTTI_DNN_MUL, 1)                                                       \
    X(CUDNN_POINTWISE_SUB, TUTTI_DNN_SUB, 9)                                                       \
    X(CUDNN_POINTWISE_DIV, TUTTI_DNN_DIV, 6)                                                       \
    X(CUDNN_POINTWISE_EXP, TUTTI_DNN_EXP, 13)                                                      \
    X(CUDNN_POINTWISE_LOG, TUTTI_DNN_LOG, 15)                                                      \
    X(CUDNN_POINTWISE_RELU_FWD, TUTTI_DNN_RELU_FWD, 100)                                           \
    X(CUDNN_POINTWISE_RELU_BWD, TUTTI_DNN_RELU_BWD, 200)                                           \
    X(CUDNN_POINTWISE_GEN_INDEX, TUTTI_DNN_GEN_INDEX, 501)                                         \
    X(CUDNN_POINTWISE_CMP_GE, TUTTI_DNN_CMP_GE, 303)                                               \
    X(CUDNN_POINTWISE_BINARY_SELECT, TUTTI_DNN_BINARY_SELECT, 601)                                 \
    X(CUDNN_POINTWISE_IDENTITY, TUTTI_DNN_IDENTITY, 21)                                            \
    X(CUDNN_REDUCE_TENSOR_ADD, TUTTI_DNN_REDUCE_ADD, 0)                                            \
    X(CUDNN_REDUCE_TENSOR_MAX, TUTTI_DNN_REDUCE_MAX, 3)                                            \
    X(CUDNN_DATA_FLOAT, TUTTI_DNN_DATA_FLOAT, 0)                                                   \
    X(CUDNN_DATA_HALF, TUTTI_DNN_DATA_HALF, 2)                                                     \
    X(CUDNN_DATA_BFLOAT16, TUTTI_DNN_DATA_BFLOAT16, 9)                                             \
    X(CUDNN_DATA_INT32, TUTTI_DNN_DATA_INT32, 4)                                                   \
    X(CUDNN_DATA_INT64, TUTTI_DNN_DATA_INT64, 10)                                                  \
    X(CUDNN_DATA_BOOLEAN, TUTTI_DNN_DATA_BOOLEAN, 11)                                              \
    X(CUDNN_HEUR_MODE_A, TUTTI_DNN_HEUR_A, 3)                                                      \
    X(CUDNN_HEUR_MODE_B, TUTTI_DNN_HEUR_B, 1)                                                      \
    X(CUDNN_HEUR_MODE_FALLBACK, TUTTI_DNN_HEUR_FALLBACK, 2)                                        \
    X(CUDNN_HEUR_MODE_INSTANT, TUTTI_DNN_HEUR_INSTANT, 0)                                          \
    X(CUDNN_NUMERICAL_NOTE_TENSOR_CORE, TUTTI_DNN_TENSOR_CORE, 0)                                  \
    X(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS, TUTTI_DNN_DOWN_CONVERT_INPUTS, 1)                  \
    X(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, TUTTI_DNN_NONDETERMINISTIC, 4)                        \
    X(CUDNN_CROSS_CORRELATION, TUTTI_DNN_CROSS_CORRELATION, 1)

enum {
#define TUTTI_DNN_ENUM(theirs, ours, number) ours = (number),
    TUTTI_DNN_CONSTANTS(TUTTI_DNN_ENUM)
};

#endif
