/* attention_cudnn.c: attention of 16 bits and its gradient by cuDNN's fused engines, where every
 * query sees all keys or all up to its own; else, and where cuDNN is not installed or has no
 * engine, by our own kernels. The gradient's sums are joined by atomics: not in deterministic mode.
 */
#include <math.h>
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/attention.h"
#include "device/cuda/operators/dnn.h"

enum { Q, K, V, Y, L, DY, MOST_SIZE = 128 };

static void dense(int64_t heads, int64_t rows, int64_t size, int64_t *strides)
{
    strides[0] = heads * rows * size;
    strides[1] = rows * size;
    strides[2] = size;
}

static tutti_cuda_attention describe(const tutti_cuda_call *c)
{
    const tutti_view *q = &c->call->inputs[Q], *k = &c->call->inputs[K];
    tutti_cuda_attention a;
    memset(&a, 0, sizeof a); /* it is a key */
    a.type = q->dtype == TUTTI_BF16 ? TUTTI_CUDA_BF16 : TUTTI_CUDA_F16;
    a.batch = q->dims[0];
    a.heads = q->dims[1];
    a.queries = q->dims[2];
    a.keys = k->dims[2];
    a.size = q->dims[3];
    a.causal = tutti_attr_int(c->call->attrs, c->call->attr_count, "causal") != 0;
    a.scale = (float)tutti_attr_float(c->call->attrs, c->call->attr_count, "scale");
    a.scale = a.scale == 0 ? (float)(1 / sqrt((double)a.size)) : a.scale;
    dense(a.heads, a.queries, a.size, a.q_strides);
    dense(a.heads, a.keys, a.size, a.k_strides);
    dense(a.heads, a.keys, a.size, a.v_strides);
    dense(a.heads, a.queries, a.size, a.o_strides);
    return a;
}

static int64_t align(int64_t bytes)
{
    return tutti__cuda_ceil(bytes, 256) * 256;
}

static tutti_status attention_cudnn_run(const tutti_cuda_call *c)
{
    const tutti_cuda_graph *graph;
    tutti_cuda_attention a = describe(c);
    bool gradient = strcmp(c->call->op->name, "attention") != 0;
    tutti_cu_pointer work = tutti__cuda_work(c);
    if (!c->dnn || tutti__cuda_dnn_attention(c->dnn, &a, gradient, &graph) != TUTTI_OK)
        return tutti__cuda_attention_any(c);
    if (!gradient)
        return tutti__cuda_attention_run(graph, &a, c->on.stream, tutti__cuda_in(c, Q),
                                         tutti__cuda_in(c, K), tutti__cuda_in(c, V),
                                         tutti__cuda_out(c, 0), tutti__cuda_out(c, 1),
                                         tutti__cuda_dnn_workspace(c->dnn));
    int64_t rows = a.batch * a.heads * a.queries;
    tutti_cuda_attention_gradient g = {.q = tutti__cuda_in(c, Q),
                                       .k = tutti__cuda_in(c, K),
                                       .v = tutti__cuda_in(c, V),
                                       .o = tutti__cuda_in(c, Y),
                                       .stats = tutti__cuda_in(c, L),
                                       .d_o = tutti__cuda_in(c, DY),
                                       .dq = tutti__cuda_out(c, 0),
                                       .dk = tutti__cuda_out(c, 1),
                                       .dv = tutti__cuda_out(c, 2),
                                       .sums = work,
                                       .accumulator = work + (uint64_t)align(rows * 4)};
    g.workspace = tutti__cuda_dnn_workspace(c->dnn);
    return tutti__cuda_attention_gradient_run(graph, &a, c->on, &g);
}

static int attention_cudnn_score(const tutti_kernel_query *query)
{
    const tutti_infer *node = &query->node;
    const tutti_type *q = &node->inputs[Q], *k = &node->inputs[K], *v = &node->inputs[V];
    bool gradient = strcmp(node->op->name, "attention") != 0;
    bool causal = tutti_attr_int(node->attrs, node->attr_count, "causal") != 0;
    if ((q->dtype != TUTTI_BF16 && q->dtype != TUTTI_F16) || q->dims[3] != v->dims[3] ||
        q->dims[3] % 8 != 0 || q->dims[3] > MOST_SIZE || q->dims[2] < 1 || k->dims[2] < 1 ||
        q->dims[0] * q->dims[1] < 1)
        return 0;
    if (causal && (q->dims[2] != k->dims[2] ||
                   tutti_attr_int(node->attrs, node->attr_count, "first_query") != 0))
        return 0;
    if (!gradient)
        return node->input_count == 3 ? 100 : 0;
    return !query->deterministic && node->input_count == 6 &&
                   tutti_attr_int(node->attrs, node->attr_count, "grads") == 1
               ? 100
               : 0;
}

static size_t attention_cudnn_workspace(const tutti_kernel_query *query)
{
    const tutti_type *q = &query->node.inputs[Q];
    int64_t rows = q->dims[0] * q->dims[1] * q->dims[2];
    size_t own = (size_t)rows * 16,
           theirs = (size_t)(align(rows * 4) + align(rows * q->dims[3] * 4));
    if (strcmp(query->node.op->name, "attention") == 0)
        return 0;
    return own > theirs ? own : theirs;
}

static const char *const others[] = {"attention_backward", NULL};

const tutti_cuda_kernel tutti_cuda_kernel_attention_cudnn = {
    .name = "attention.cudnn",
    .version = 1,
    .op = "attention",
    .ops = others,
    .score = attention_cudnn_score,
    .workspace = attention_cudnn_workspace,
    .run = attention_cudnn_run,
};
