/* attention_cudnn.c: attention of 16 bits and its gradient by cuDNN's fused engines, where every
 * query sees all keys or all up to its own; else, and where cuDNN is not installed or has no
 * engine, by our own kernels. The gradient's sums are joined by atomics: not in deterministic mode.
 */
#include <math.h>
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/attention.h"
#include "device/cuda/operators/copies.h"
#include "device/cuda/operators/dnn.h"
#include "graph/graph.h"

enum { Q, K, V, Y, L, DY, MOST = 6, MOST_SIZE = 128 };

/* The node, or, of a fused one, what its body has: which of the call's inputs each of the
 * operator's is. Where `turned`, all but l are [batch, steps, heads, size]. */
typedef struct work {
    const tutti_op *op;
    const tutti_attr *attrs;
    int attr_count, count;
    int from[MOST], to[3]; /* and where its outputs go; -1: nobody wants it */
    bool turned, gradient;
    tutti_type inputs[MOST];
} work;

static bool is_fused(const tutti_op *op)
{
    return strncmp(op->name, "fused", 5) == 0;
}

static tutti_edge behind_turn(tutti_edge edge)
{
    return tutti__is(edge.node, "transpose") ? edge.node->inputs[0] : edge;
}

static bool read_body(const tutti_attr *attrs, int attr_count, int outputs, work *w)
{
    const tutti_attr *body = tutti_attr_find(attrs, attr_count, "body");
    if (!body || strcmp(tutti_attr_string(attrs, attr_count, "pattern"), "attention_rows") != 0)
        return false;
    const tutti_graph *graph = body->value.graph;
    const tutti_edge *results = graph->results.data;
    const tutti_node *node = outputs > 0 ? behind_turn(results[0]).node : NULL;
    if (!node)
        return false;
    w->gradient = tutti__is(node, "attention_backward");
    if ((!w->gradient && !tutti__is(node, "attention")) || node->input_count > MOST ||
        outputs > (w->gradient ? 3 : 2))
        return false;
    w->to[0] = w->to[1] = w->to[2] = -1;
    for (int i = 0; i < outputs; i++) {
        tutti_edge of = behind_turn(results[i]);
        bool turns = tutti__is(results[i].node, "transpose");
        if (of.node != node || of.index > 2 || turns != (w->gradient || of.index == 0))
            return false;
        w->to[of.index] = i;
    }
    if (w->to[0] < 0 || (w->gradient && (w->to[1] < 0 || w->to[2] < 0)))
        return false;
    w->op = node->op;
    w->attrs = node->attrs;
    w->attr_count = node->attr_count;
    w->count = node->input_count;
    w->turned = true;
    for (int i = 0; i < w->count; i++) {
        tutti_edge parameter = behind_turn(node->inputs[i]);
        if (!tutti__is(parameter.node, "parameter"))
            return false;
        w->from[i] = (int)tutti__int(parameter.node, "index");
        w->inputs[i] = *tutti__edge_type(node->inputs[i]);
    }
    return true;
}

static bool read_work(const tutti_infer *node, work *w)
{
    *w = (work){.op = node->op,
                .attrs = node->attrs,
                .attr_count = node->attr_count,
                .count = node->input_count,
                .to = {0, 1, 2},
                .gradient = strcmp(node->op->name, "attention") != 0};
    if (is_fused(node->op))
        return read_body(node->attrs, node->attr_count, node->output_count, w);
    for (int i = 0; i < node->input_count && i < MOST; i++) {
        w->from[i] = i;
        w->inputs[i] = node->inputs[i];
    }
    return node->input_count <= MOST;
}

static tutti_status work_of_call(const tutti_cuda_call *c, work *w)
{
    const tutti_kernel_call *call = c->call;
    tutti_type types[16];
    tutti_infer node = {.op = call->op,
                        .attrs = call->attrs,
                        .attr_count = call->attr_count,
                        .input_count = call->input_count,
                        .output_count = call->output_count,
                        .inputs = types};
    for (int i = 0; i < call->input_count && i < (int)TUTTI_COUNT(types); i++) {
        const tutti_view *view = &call->inputs[i];
        types[i] = (tutti_type){.dtype = view->dtype, .rank = view->rank};
        for (int d = 0; d < view->rank; d++)
            types[i].dims[d] = view->dims[d];
    }
    return read_work(&node, w) ? TUTTI_OK
                               : tutti_fail(TUTTI_INTERNAL, "'%s' is no attention", call->name);
}

static void strides_of(const work *w, int64_t heads, int64_t rows, int64_t size, int64_t *strides)
{
    strides[0] = heads * rows * size;
    strides[1] = w->turned ? size : rows * size;
    strides[2] = w->turned ? heads * size : size;
}

static tutti_cuda_attention describe(const work *w)
{
    const tutti_type *q = &w->inputs[Q], *k = &w->inputs[K];
    tutti_cuda_attention a;
    memset(&a, 0, sizeof a); /* it is a key */
    a.type = q->dtype == TUTTI_BF16 ? TUTTI_CUDA_BF16 : TUTTI_CUDA_F16;
    a.batch = q->dims[0];
    a.heads = q->dims[1];
    a.queries = q->dims[2];
    a.keys = k->dims[2];
    a.size = q->dims[3];
    a.causal = tutti_attr_int(w->attrs, w->attr_count, "causal") != 0;
    a.scale = (float)tutti_attr_float(w->attrs, w->attr_count, "scale");
    a.scale = a.scale == 0 ? (float)(1 / sqrt((double)a.size)) : a.scale;
    strides_of(w, a.heads, a.queries, a.size, a.q_strides);
    strides_of(w, a.heads, a.keys, a.size, a.k_strides);
    strides_of(w, a.heads, a.keys, a.size, a.v_strides);
    strides_of(w, a.heads, a.queries, a.size, a.o_strides);
    return a;
}

static int64_t align(int64_t bytes)
{
    return tutti__cuda_ceil(bytes, 256) * 256;
}

static int64_t bytes_of(const tutti_type *type)
{
    return align(tutti__cuda_type_count(type) * (int64_t)tutti_dtype_size(type->dtype));
}

/* Between [batch, steps, heads, size] and [batch, heads, steps, size]; dims: of the latter. */
static tutti_status turn(const tutti_cuda_call *c, const tutti_type *type, bool back,
                         tutti_cu_pointer x, tutti_cu_pointer y)
{
    const int64_t *d = type->dims;
    tutti_cuda_copies m = {.size = (int)tutti_dtype_size(type->dtype), .x = x, .y = y, .rank = 4};
    const int64_t heads_first[] = {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
    const int64_t steps_first[] = {d[1] * d[2] * d[3], d[3], d[1] * d[3], 1};
    for (int i = 0; i < 4; i++) {
        m.dim[i] = d[i];
        m.from[i] = back ? heads_first[i] : steps_first[i];
        m.to[i] = back ? steps_first[i] : heads_first[i];
    }
    return tutti__cuda_copies(c, &m);
}

/* Our own kernels; what is turned is turned in the work space, behind what they take of it. */
static tutti_status without_library(const tutti_cuda_call *c, const work *w)
{
    tutti_view inputs[MOST], outputs[3];
    int64_t own = w->gradient ? align(tutti__cuda_type_count(&w->inputs[L]) * 16) : 0;
    tutti_cu_pointer at = tutti__cuda_work(c) + (uint64_t)own;
    if (!w->turned)
        return tutti__cuda_attention_any(c);
    for (int i = 0; i < w->count; i++) {
        const tutti_type *type = &w->inputs[i];
        inputs[i] = (tutti_view){.dtype = type->dtype, .rank = type->rank, .dims = type->dims};
        inputs[i].data = c->call->inputs[w->from[i]].data;
        if (i == L)
            continue;
        TUTTI_TRY(turn(c, type, false, tutti__cuda_in(c, w->from[i]), at));
        inputs[i].data = (void *)(uintptr_t)at;
        at += (uint64_t)bytes_of(type);
    }
    int turned = w->gradient ? 3 : 1;
    for (int i = 0; i < turned; i++) {
        outputs[i] = inputs[i]; /* y has the type of q, gradients those of q, k and v */
        outputs[i].data = (void *)(uintptr_t)at;
        at += (uint64_t)bytes_of(&w->inputs[i]);
    }
    if (!w->gradient) {
        outputs[1] = (tutti_view){.dtype = TUTTI_F32, .rank = 3, .dims = w->inputs[Q].dims};
        outputs[1].data = w->to[1] >= 0 ? c->call->outputs[w->to[1]].data : (void *)(uintptr_t)at;
    }
    tutti_kernel_call inner = *c->call;
    tutti_cuda_call call = *c;
    inner.op = w->op;
    inner.attrs = w->attrs;
    inner.attr_count = w->attr_count;
    inner.input_count = w->count;
    inner.output_count = w->gradient ? 3 : 2;
    inner.inputs = inputs;
    inner.outputs = outputs;
    call.call = &inner;
    TUTTI_TRY(tutti__cuda_attention_any(&call));
    for (int i = 0; i < turned; i++)
        TUTTI_TRY(turn(c, &w->inputs[i], true, (tutti_cu_pointer)(uintptr_t)outputs[i].data,
                       tutti__cuda_out(c, w->to[i])));
    return TUTTI_OK;
}

static tutti_status attention_cudnn_run(const tutti_cuda_call *c)
{
    work w;
    const tutti_cuda_graph *graph;
    TUTTI_TRY(work_of_call(c, &w));
    tutti_cuda_attention a = describe(&w);
    int64_t rows = a.batch * a.heads * a.queries;
    tutti_cu_pointer in[MOST] = {0}, space = tutti__cuda_work(c);
    if (!c->dnn || tutti__cuda_dnn_attention(c->dnn, &a, w.gradient, &graph) != TUTTI_OK)
        return without_library(c, &w);
    for (int i = 0; i < w.count; i++)
        in[i] = tutti__cuda_in(c, w.from[i]);
    if (!w.gradient)
        return tutti__cuda_attention_run(
            graph, &a, c->on.stream, in[Q], in[K], in[V], tutti__cuda_out(c, w.to[0]),
            w.to[1] >= 0 ? tutti__cuda_out(c, w.to[1]) : space, tutti__cuda_dnn_workspace(c->dnn));
    tutti_cuda_attention_gradient g = {.q = in[Q],
                                       .k = in[K],
                                       .v = in[V],
                                       .o = in[Y],
                                       .stats = in[L],
                                       .d_o = in[DY],
                                       .dq = tutti__cuda_out(c, w.to[0]),
                                       .dk = tutti__cuda_out(c, w.to[1]),
                                       .dv = tutti__cuda_out(c, w.to[2]),
                                       .sums = space,
                                       .accumulator = space + (uint64_t)align(rows * 4),
                                       .workspace = tutti__cuda_dnn_workspace(c->dnn)};
    return tutti__cuda_attention_gradient_run(graph, &a, c->on, &g);
}

static int attention_cudnn_score(const tutti_kernel_query *query)
{
    work w;
    if (!read_work(&query->node, &w))
        return 0;
    const tutti_type *q = &w.inputs[Q], *k = &w.inputs[K], *v = &w.inputs[V];
    bool causal = tutti_attr_int(w.attrs, w.attr_count, "causal") != 0;
    if ((q->dtype != TUTTI_BF16 && q->dtype != TUTTI_F16) || q->dims[3] != v->dims[3] ||
        q->dims[3] % 8 != 0 || q->dims[3] > MOST_SIZE || q->dims[2] < 1 || k->dims[2] < 1 ||
        q->dims[0] * q->dims[1] < 1)
        return 0;
    if (causal &&
        (q->dims[2] != k->dims[2] || tutti_attr_int(w.attrs, w.attr_count, "first_query") != 0))
        return 0;
    if (!w.gradient)
        return w.count == 3 ? 100 : 0;
    return !query->deterministic && w.count == MOST &&
                   tutti_attr_int(w.attrs, w.attr_count, "grads") == 1
               ? 100
               : 0;
}

static size_t attention_cudnn_workspace(const tutti_kernel_query *query)
{
    work w;
    if (!read_work(&query->node, &w))
        return 0;
    const tutti_type *q = &w.inputs[Q];
    int64_t rows = q->dims[0] * q->dims[1] * q->dims[2], turned = 0;
    int64_t own = w.gradient ? align(rows * 16) : align(rows * 4);
    for (int i = 0; w.turned && i < w.count; i++)
        turned += i == L ? 0 : bytes_of(&w.inputs[i]);
    for (int i = 0; w.turned && i < (w.gradient ? 3 : 1); i++)
        turned += bytes_of(&w.inputs[i]);
    int64_t theirs = w.gradient ? align(rows * 4) + align(rows * q->dims[3] * 4) : 0;
    return (size_t)(own + turned > theirs ? own + turned : theirs);
}

static const char *const others[] = {"attention_backward", "fused", NULL};

const tutti_cuda_kernel tutti_cuda_kernel_attention_cudnn = {
    .name = "attention.cudnn",
    .version = 2,
    .op = "attention",
    .ops = others,
    .turned = true,
    .score = attention_cudnn_score,
    .workspace = attention_cudnn_workspace,
    .run = attention_cudnn_run,
};
