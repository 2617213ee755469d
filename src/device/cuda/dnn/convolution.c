/* convolution.c: see convolution.h. cuDNN names dimensions batch, channels, height, width whatever
 * the order in memory; strides say that channels are last. */
#include "device/cuda/dnn/convolution.h"

enum { X = 1, W, Y };

static unsigned type_of(tutti_cuda_type type)
{
    return type == TUTTI_CUDA_F32    ? TUTTI_DNN_DATA_FLOAT
           : type == TUTTI_CUDA_BF16 ? TUTTI_DNN_DATA_BFLOAT16
                                     : TUTTI_DNN_DATA_HALF;
}

void tutti__cuda_convolution_size(const tutti_cuda_convolution *c, int64_t ret[2])
{
    const int64_t sizes[] = {c->height, c->width};
    for (int i = 0; i < 2; i++)
        ret[i] = (sizes[i] + c->before[i] + c->after[i] - c->dilation[i] * (c->kernel[i] - 1) - 1) /
                     c->stride[i] +
                 1;
}

static tutti_dnn_descriptor image(tutti_cuda_graph *graph, tutti_cuda_type type, int64_t id,
                                  int64_t n, int64_t c, int64_t h, int64_t w)
{
    return tutti__cuda_graph_tensor(graph,
                                    &(tutti_cuda_dnn_tensor){.type = type_of(type),
                                                             .rank = 4,
                                                             .dims = {n, c, h, w},
                                                             .strides = {h * w * c, 1, w * c, c},
                                                             .id = id});
}

static tutti_dnn_descriptor describe(tutti_cuda_graph *graph, const tutti_cuda_convolution *c)
{
    unsigned precision = TUTTI_DNN_DATA_FLOAT, mode = TUTTI_DNN_CROSS_CORRELATION;
    int64_t dimensions = 2;
    tutti_dnn_descriptor made = tutti__cuda_graph_open(graph, TUTTI_DNN_A_CONVOLUTION);
    tutti__cuda_graph_set(graph, made, TUTTI_DNN_CONVOLUTION_COMP_TYPE, TUTTI_DNN_TYPE_DATA_TYPE, 1,
                          &precision);
    tutti__cuda_graph_set(graph, made, TUTTI_DNN_CONVOLUTION_CONV_MODE,
                          TUTTI_DNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    tutti__cuda_graph_set(graph, made, TUTTI_DNN_CONVOLUTION_SPATIAL_DIMS, TUTTI_DNN_TYPE_INT64, 1,
                          &dimensions);
    const struct {
        unsigned attribute;
        const int64_t *values;
    } pairs[] = {{TUTTI_DNN_CONVOLUTION_DILATIONS, c->dilation},
                 {TUTTI_DNN_CONVOLUTION_FILTER_STRIDES, c->stride},
                 {TUTTI_DNN_CONVOLUTION_PRE_PADDINGS, c->before},
                 {TUTTI_DNN_CONVOLUTION_POST_PADDINGS, c->after}};
    for (size_t i = 0; i < TUTTI_COUNT(pairs); i++)
        tutti__cuda_graph_set(graph, made, pairs[i].attribute, TUTTI_DNN_TYPE_INT64, 2,
                              pairs[i].values);
    tutti__cuda_graph_close(graph, made);
    return made;
}

/* What each kind calls its parts. */
static const struct {
    unsigned operation, alpha, beta, convolution, x, w, y;
} kinds[] = {
    [TUTTI_CUDA_CONVOLUTION_FORWARD] = {TUTTI_DNN_A_OPERATION_CONVOLUTION_FORWARD,
                                        TUTTI_DNN_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                        TUTTI_DNN_OPERATION_CONVOLUTION_FORWARD_BETA,
                                        TUTTI_DNN_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                        TUTTI_DNN_OPERATION_CONVOLUTION_FORWARD_X,
                                        TUTTI_DNN_OPERATION_CONVOLUTION_FORWARD_W,
                                        TUTTI_DNN_OPERATION_CONVOLUTION_FORWARD_Y},
    [TUTTI_CUDA_CONVOLUTION_DATA] = {TUTTI_DNN_A_OPERATION_CONVOLUTION_BACKWARD_DATA,
                                     TUTTI_DNN_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                     TUTTI_DNN_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                     TUTTI_DNN_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                     TUTTI_DNN_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                     TUTTI_DNN_OPERATION_CONVOLUTION_BWD_DATA_W,
                                     TUTTI_DNN_OPERATION_CONVOLUTION_BWD_DATA_DY},
    [TUTTI_CUDA_CONVOLUTION_FILTER] = {TUTTI_DNN_A_OPERATION_CONVOLUTION_BACKWARD_FILTER,
                                       TUTTI_DNN_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                       TUTTI_DNN_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                       TUTTI_DNN_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                       TUTTI_DNN_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                       TUTTI_DNN_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                       TUTTI_DNN_OPERATION_CONVOLUTION_BWD_FILTER_DY},
};

tutti_status tutti__cuda_convolution_plan(const tutti_dnn *dnn, tutti_dnn_handle handle,
                                          const tutti_cuda_convolution *c,
                                          tutti_cuda_graph *ret_graph)
{
    int64_t size[2];
    float alpha = 1, beta = 0;
    tutti_cuda_graph graph;
    TUTTI_TRY(tutti__cuda_graph_begin(dnn, handle, &graph));
    tutti__cuda_convolution_size(c, size);
    tutti_dnn_descriptor parts[] = {
        image(&graph, c->type, X, c->batch, c->in, c->height, c->width),
        image(&graph, c->type, W, c->out, c->in, c->kernel[0], c->kernel[1]),
        image(&graph, c->type, Y, c->batch, c->out, size[0], size[1]), describe(&graph, c)};
    tutti_dnn_descriptor made = tutti__cuda_graph_open(&graph, kinds[c->kind].operation);
    const unsigned names[] = {kinds[c->kind].x, kinds[c->kind].w, kinds[c->kind].y,
                              kinds[c->kind].convolution};
    for (int i = 0; i < 4; i++)
        tutti__cuda_graph_set(&graph, made, names[i], TUTTI_DNN_TYPE_BACKEND_DESCRIPTOR, 1,
                              &parts[i]);
    tutti__cuda_graph_set(&graph, made, kinds[c->kind].alpha, TUTTI_DNN_TYPE_FLOAT, 1, &alpha);
    tutti__cuda_graph_set(&graph, made, kinds[c->kind].beta, TUTTI_DNN_TYPE_FLOAT, 1, &beta);
    tutti__cuda_graph_operation(&graph, made);
    unsigned refused = c->deterministic ? 1u << TUTTI_DNN_NONDETERMINISTIC : 0;
    if (c->type == TUTTI_CUDA_F32 && !c->tf32)
        refused |= 1u << TUTTI_DNN_TENSOR_CORE | 1u << TUTTI_DNN_DOWN_CONVERT_INPUTS;
    tutti_status status = tutti__cuda_graph_plan(&graph, refused);
    if (status == TUTTI_OK)
        *ret_graph = graph;
    else
        tutti__cuda_graph_free(&graph);
    return status;
}

tutti_status tutti__cuda_convolution_run(const tutti_cuda_graph *graph, tutti_cu_stream stream,
                                         tutti_cu_pointer x, tutti_cu_pointer w, tutti_cu_pointer y,
                                         tutti_cu_pointer workspace)
{
    const int64_t ids[] = {X, W, Y};
    void *addresses[] = {(void *)(uintptr_t)x, (void *)(uintptr_t)w, (void *)(uintptr_t)y};
    return tutti__cuda_graph_run(graph, stream, 3, ids, addresses, workspace);
}
