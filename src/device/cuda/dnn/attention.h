/* attention.h: attention by cuDNN's fused engines, the matrix of scores never in memory:
 *
 *     o = softmax(scale q k' + mask) v        stats = log of each row's sum of exponentials
 *
 * q and o are [batch, heads, queries, size] by their strides, k and v [batch, heads, keys, size];
 * so heads cut out of one matrix of a layer need no copy. bf16 or f16. */
#ifndef TUTTI_CUDA_ATTENTION_H
#define TUTTI_CUDA_ATTENTION_H

#include "device/cuda/dnn/graph.h"

typedef struct tutti_cuda_attention {
    tutti_cuda_type type;
    int64_t batch, heads, queries, keys, size;
    bool causal;
    float scale;
    /* Elements from one batch, head, row to the next; the last dimension is dense. */
    int64_t q_strides[3], k_strides[3], v_strides[3], o_strides[3];
} tutti_cuda_attention;

/* stats [batch, heads, queries] f32 is written, for the gradient. */
tutti_status tutti__cuda_attention_plan(const tutti_dnn *dnn, tutti_dnn_handle handle,
                                        const tutti_cuda_attention *a, tutti_cuda_graph *ret_graph);
tutti_status tutti__cuda_attention_run(const tutti_cuda_graph *graph, const tutti_cuda_attention *a,
                                       tutti_cu_stream stream, tutti_cu_pointer q,
                                       tutti_cu_pointer k, tutti_cu_pointer v, tutti_cu_pointer o,
                                       tutti_cu_pointer stats, tutti_cu_pointer workspace);

/* The gradient: dq, dk, dv have the layouts of q, k, v, do that of o. `stats` as forward left it;
 * sums [batch, heads, queries] f32 and accumulator [batch, heads, queries, size] f32 are work
 * space. Sums over keys are joined by atomics: not for deterministic mode. */
tutti_status tutti__cuda_attention_gradient_plan(const tutti_dnn *dnn, tutti_dnn_handle handle,
                                                 const tutti_cuda_attention *a,
                                                 tutti_cuda_graph *ret_graph);
typedef struct tutti_cuda_attention_gradient {
    tutti_cu_pointer q, k, v, o, stats, d_o, dq, dk, dv, sums, accumulator, workspace;
} tutti_cuda_attention_gradient;
tutti_status tutti__cuda_attention_gradient_run(const tutti_cuda_graph *graph,
                                                const tutti_cuda_attention *a, tutti_cuda_stream on,
                                                const tutti_cuda_attention_gradient *g);

#endif
