/* attention.c: see attention.h. Engines know a graph by its shape: the operations, their order and
 * which tensors are inner are those that cuDNN documents for fused attention. */
#include "device/cuda/dnn/attention.h"

#include <float.h>

/* Addresses come under these numbers; inner tensors are numbered from INNER. */
enum { Q = 1, K, V, O, STATS, SCALE, LOWEST, D_O, DQ, DK, DV, SUMS, ACCUMULATOR, INNER = 100 };

typedef struct builder {
    tutti_cuda_graph *graph;
    const tutti_cuda_attention *a;
    unsigned type;
    int64_t next;
    tutti_dnn_descriptor scale, lowest; /* one descriptor each, however often they are read */
} builder;

static unsigned type_of(tutti_cuda_type type)
{
    return type == TUTTI_CUDA_BF16 ? TUTTI_DNN_DATA_BFLOAT16 : TUTTI_DNN_DATA_HALF;
}

/* [batch, heads, rows, size] by strides; transposed: [batch, heads, size, rows]. */
static tutti_dnn_descriptor outer(builder *b, int64_t id, int64_t rows, const int64_t *strides,
                                  bool transposed)
{
    tutti_cuda_dnn_tensor t = {.type = b->type,
                               .rank = 4,
                               .dims = {b->a->batch, b->a->heads, rows, b->a->size},
                               .strides = {strides[0], strides[1], strides[2], 1},
                               .id = id};
    if (transposed) {
        t.dims[2] = b->a->size;
        t.dims[3] = rows;
        t.strides[2] = 1;
        t.strides[3] = strides[2];
    }
    return tutti__cuda_graph_tensor(b->graph, &t);
}

/* Dense [batch, heads, rows, columns]; id 0: inner. */
static tutti_dnn_descriptor dense(builder *b, int64_t id, unsigned type, int64_t rows,
                                  int64_t columns)
{
    return tutti__cuda_graph_tensor(
        b->graph, &(tutti_cuda_dnn_tensor){
                      .type = type,
                      .rank = 4,
                      .dims = {b->a->batch, b->a->heads, rows, columns},
                      .strides = {b->a->heads * rows * columns, rows * columns, columns, 1},
                      .id = id ? id : INNER + b->next++,
                      .inner = id == 0});
}

static tutti_dnn_descriptor scores(builder *b, unsigned type)
{
    return dense(b, 0, type, b->a->queries, b->a->keys);
}

static tutti_dnn_descriptor number(builder *b, int64_t id)
{
    return tutti__cuda_graph_tensor(b->graph, &(tutti_cuda_dnn_tensor){.type = TUTTI_DNN_DATA_FLOAT,
                                                                       .rank = 4,
                                                                       .dims = {1, 1, 1, 1},
                                                                       .strides = {1, 1, 1, 1},
                                                                       .id = id,
                                                                       .value = true});
}

/* y = mode(x, other), a new matrix of scores. */
static tutti_dnn_descriptor attention_step(builder *b, unsigned mode, tutti_dnn_descriptor x,
                                           tutti_dnn_descriptor other)
{
    tutti_dnn_descriptor y = scores(b, TUTTI_DNN_DATA_FLOAT);
    tutti__cuda_graph_pointwise(b->graph, mode, x, other, NULL, y, 0);
    return y;
}

/* Scores of keys behind the query become the lowest number. */
static tutti_dnn_descriptor mask(builder *b, tutti_dnn_descriptor s)
{
    tutti_dnn_descriptor row = scores(b, TUTTI_DNN_DATA_INT32),
                         column = scores(b, TUTTI_DNN_DATA_INT32),
                         seen = scores(b, TUTTI_DNN_DATA_BOOLEAN),
                         masked = scores(b, TUTTI_DNN_DATA_FLOAT);
    if (!b->a->causal)
        return s;
    tutti__cuda_graph_pointwise(b->graph, TUTTI_DNN_GEN_INDEX, s, NULL, NULL, row, 2);
    tutti__cuda_graph_pointwise(b->graph, TUTTI_DNN_GEN_INDEX, s, NULL, NULL, column, 3);
    tutti__cuda_graph_pointwise(b->graph, TUTTI_DNN_CMP_GE, row, column, NULL, seen, 0);
    tutti__cuda_graph_pointwise(b->graph, TUTTI_DNN_BINARY_SELECT, s, b->lowest, seen, masked, 0);
    return masked;
}

/* scale q k', masked */
static tutti_dnn_descriptor make_scores(builder *b, tutti_dnn_descriptor q, tutti_dnn_descriptor k)
{
    tutti_dnn_descriptor s = scores(b, TUTTI_DNN_DATA_FLOAT);
    tutti__cuda_graph_matmul(b->graph, q, k, s);
    return mask(b, attention_step(b, TUTTI_DNN_MUL, s, b->scale));
}

static void build_forward(builder *b)
{
    const tutti_cuda_attention *a = b->a;
    tutti_dnn_descriptor q = outer(b, Q, a->queries, a->q_strides, false);
    tutti_dnn_descriptor k = outer(b, K, a->keys, a->k_strides, true);
    tutti_dnn_descriptor v = outer(b, V, a->keys, a->v_strides, false);
    tutti_dnn_descriptor o = outer(b, O, a->queries, a->o_strides, false);
    tutti_dnn_descriptor most = dense(b, 0, TUTTI_DNN_DATA_FLOAT, a->queries, 1),
                         sum = dense(b, 0, TUTTI_DNN_DATA_FLOAT, a->queries, 1),
                         log_sum = dense(b, 0, TUTTI_DNN_DATA_FLOAT, a->queries, 1),
                         stats = dense(b, STATS, TUTTI_DNN_DATA_FLOAT, a->queries, 1);
    tutti_dnn_descriptor p = scores(b, b->type), s = make_scores(b, q, k);
    tutti__cuda_graph_reduce(b->graph, TUTTI_DNN_REDUCE_MAX, s, most);
    tutti_dnn_descriptor e =
        attention_step(b, TUTTI_DNN_EXP, attention_step(b, TUTTI_DNN_SUB, s, most), NULL);
    tutti__cuda_graph_reduce(b->graph, TUTTI_DNN_REDUCE_ADD, e, sum);
    tutti__cuda_graph_pointwise(b->graph, TUTTI_DNN_LOG, sum, NULL, NULL, log_sum, 0);
    tutti__cuda_graph_pointwise(b->graph, TUTTI_DNN_ADD, most, log_sum, NULL, stats, 0);
    tutti__cuda_graph_pointwise(b->graph, TUTTI_DNN_DIV, e, sum, NULL, p, 0);
    tutti__cuda_graph_matmul(b->graph, p, v, o);
}

/* x', by strides, as an operation that moves nothing. */
static tutti_dnn_descriptor transpose(builder *b, tutti_dnn_descriptor x, unsigned type)
{
    const tutti_cuda_attention *a = b->a;
    tutti_dnn_descriptor y = tutti__cuda_graph_tensor(
        b->graph, &(tutti_cuda_dnn_tensor){.type = type,
                                           .rank = 4,
                                           .dims = {a->batch, a->heads, a->keys, a->queries},
                                           .strides = {a->heads * a->queries * a->keys,
                                                       a->queries * a->keys, 1, a->keys},
                                           .id = INNER + b->next++,
                                           .inner = true});
    tutti_dnn_descriptor made = tutti__cuda_graph_open(b->graph, TUTTI_DNN_A_OPERATION_RESHAPE);
    tutti__cuda_graph_set(b->graph, made, TUTTI_DNN_OPERATION_RESHAPE_XDESC,
                          TUTTI_DNN_TYPE_BACKEND_DESCRIPTOR, 1, &x);
    tutti__cuda_graph_set(b->graph, made, TUTTI_DNN_OPERATION_RESHAPE_YDESC,
                          TUTTI_DNN_TYPE_BACKEND_DESCRIPTOR, 1, &y);
    tutti__cuda_graph_operation(b->graph, made);
    return y;
}

/* The graph has the sums of do o as engines expect it, but those of cuDNN 9.14 read them and never
 * write: they are made before it runs.
 *
 * p = exp(scores - stats); dv = p' do; ds = p (do v' - sum(do o)) scale; dq = ds k; dk = ds' q */
static void build_gradient(builder *b)
{
    const tutti_cuda_attention *a = b->a;
    unsigned f32 = TUTTI_DNN_DATA_FLOAT;
    tutti_dnn_descriptor q = outer(b, Q, a->queries, a->q_strides, false),
                         k = outer(b, K, a->keys, a->k_strides, false),
                         k_transposed = outer(b, K, a->keys, a->k_strides, true),
                         v_transposed = outer(b, V, a->keys, a->v_strides, true),
                         o = outer(b, O, a->queries, a->o_strides, false),
                         d_o = outer(b, D_O, a->queries, a->o_strides, false),
                         dq = outer(b, DQ, a->queries, a->q_strides, false),
                         dk = outer(b, DK, a->keys, a->k_strides, false),
                         dv = outer(b, DV, a->keys, a->v_strides, false);
    tutti_dnn_descriptor stats = dense(b, STATS, f32, a->queries, 1),
                         sums = dense(b, SUMS, f32, a->queries, 1),
                         product = dense(b, 0, f32, a->queries, a->size),
                         accumulator = dense(b, ACCUMULATOR, f32, a->queries, a->size);
    tutti__cuda_graph_pointwise(b->graph, TUTTI_DNN_MUL, d_o, o, NULL, product, 0);
    tutti__cuda_graph_reduce(b->graph, TUTTI_DNN_REDUCE_ADD, product, sums);
    tutti_dnn_descriptor s = make_scores(b, q, k_transposed);
    tutti_dnn_descriptor p =
        attention_step(b, TUTTI_DNN_EXP, attention_step(b, TUTTI_DNN_SUB, s, stats), NULL);
    tutti__cuda_graph_matmul(b->graph, transpose(b, p, b->type), d_o, dv);
    tutti_dnn_descriptor dp = scores(b, f32), ds = scores(b, b->type);
    tutti__cuda_graph_matmul(b->graph, d_o, v_transposed, dp);
    tutti_dnn_descriptor inner =
        attention_step(b, TUTTI_DNN_MUL, attention_step(b, TUTTI_DNN_SUB, dp, sums), p);
    tutti__cuda_graph_pointwise(b->graph, TUTTI_DNN_MUL, inner, b->scale, NULL, ds, 0);
    tutti__cuda_graph_matmul(b->graph, ds, k, accumulator);
    tutti__cuda_graph_pointwise(b->graph, TUTTI_DNN_IDENTITY, accumulator, NULL, NULL, dq, 0);
    tutti__cuda_graph_matmul(b->graph, transpose(b, ds, b->type), q, dk);
}

static tutti_status plan(const tutti_dnn *dnn, tutti_dnn_handle handle,
                         const tutti_cuda_attention *a, void (*build)(builder *),
                         tutti_cuda_graph *ret_graph)
{
    tutti_cuda_graph graph;
    if (a->type == TUTTI_CUDA_F32)
        return tutti_fail(TUTTI_UNSUPPORTED, "fused attention takes bf16 and f16, not f32");
    TUTTI_TRY(tutti__cuda_graph_begin(dnn, handle, &graph));
    builder b = {&graph, a, type_of(a->type), 0, NULL, NULL};
    b.scale = number(&b, SCALE);
    b.lowest = number(&b, LOWEST);
    build(&b);
    tutti_status status = tutti__cuda_graph_plan(&graph, 0);
    if (status == TUTTI_OK)
        *ret_graph = graph;
    else
        tutti__cuda_graph_free(&graph);
    return status;
}

tutti_status tutti__cuda_attention_plan(const tutti_dnn *dnn, tutti_dnn_handle handle,
                                        const tutti_cuda_attention *a, tutti_cuda_graph *ret_graph)
{
    return plan(dnn, handle, a, build_forward, ret_graph);
}

tutti_status tutti__cuda_attention_gradient_plan(const tutti_dnn *dnn, tutti_dnn_handle handle,
                                                 const tutti_cuda_attention *a,
                                                 tutti_cuda_graph *ret_graph)
{
    return plan(dnn, handle, a, build_gradient, ret_graph);
}

static void *address(tutti_cu_pointer p)
{
    return (void *)(uintptr_t)p;
}

tutti_status tutti__cuda_attention_run(const tutti_cuda_graph *graph, const tutti_cuda_attention *a,
                                       tutti_cu_stream stream, tutti_cu_pointer q,
                                       tutti_cu_pointer k, tutti_cu_pointer v, tutti_cu_pointer o,
                                       tutti_cu_pointer stats, tutti_cu_pointer workspace)
{
    float scale = a->scale, lowest = -FLT_MAX;
    const int64_t ids[] = {Q, K, V, O, STATS, SCALE, LOWEST};
    void *addresses[] = {address(q),     address(k), address(v), address(o),
                         address(stats), &scale,     &lowest};
    return tutti__cuda_graph_run(graph, stream, a->causal ? 7 : 6, ids, addresses, workspace);
}

tutti_status tutti__cuda_attention_gradient_run(const tutti_cuda_graph *graph,
                                                const tutti_cuda_attention *a, tutti_cuda_stream on,
                                                const tutti_cuda_attention_gradient *g)
{
    float scale = a->scale, lowest = -FLT_MAX;
    const int64_t ids[] = {Q, K, V, O, STATS, D_O, DQ, DK, DV, SUMS, ACCUMULATOR, SCALE, LOWEST};
    void *addresses[] = {
        address(g->q),           address(g->k),  address(g->v),  address(g->o),  address(g->stats),
        address(g->d_o),         address(g->dq), address(g->dk), address(g->dv), address(g->sums),
        address(g->accumulator), &scale,         &lowest};
    size_t bytes = (size_t)(a->batch * a->heads * a->queries * a->size) * 4;
    TUTTI_TRY(TUTTI_CU(on.device, cuMemsetD8Async(g->accumulator, 0, bytes, on.stream)));
    const int64_t dims[] = {a->batch, a->heads, a->queries, a->size};
    TUTTI_TRY(tutti__cuda_row_dots(on, a->type, g->o, g->d_o, dims, a->o_strides, g->sums));
    return tutti__cuda_graph_run(graph, on.stream, a->causal ? 13 : 12, ids, addresses,
                                 g->workspace);
}
