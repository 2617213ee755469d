/* attention.c: see attention.cu. */
#include <math.h>
#include <string.h>

#include "device/cuda/kernels/common.h"
#include "device/cuda/operators/attention.h"
#include "tables/cuda_texts.h"

enum { Q, K, V, Y, L, MOST_FEATURES = 256 };

typedef struct attention_shape {
    int64_t batch, heads, queries, keys, features, values, mask_step[4];
    double scale;
    int64_t causal, first_query;
} attention_shape;

typedef struct backward {
    tutti_cu_pointer q, k, v, y, dy, mask, l, dl;
} backward;

/* The mask's sizes along batch, heads, queries and keys. */
typedef struct mask_sizes {
    int64_t own[4];
} mask_sizes;

static mask_sizes mask_sizes_of(const tutti_view *mask)
{
    mask_sizes m;
    for (int d = 0; d < 4; d++) {
        int axis = d - (4 - mask->rank);
        m.own[d] = axis < 0 ? 1 : mask->dims[axis];
    }
    return m;
}

static attention_shape shape_of(const tutti_cuda_call *c, int mask)
{
    const tutti_view *q = &c->call->inputs[Q], *k = &c->call->inputs[K], *v = &c->call->inputs[V];
    attention_shape a = {q->dims[0], q->dims[1], q->dims[2], k->dims[2], q->dims[3],
                         v->dims[3], {0},        0,          0,          0};
    a.scale = tutti_attr_float(c->call->attrs, c->call->attr_count, "scale");
    a.scale = a.scale == 0 ? 1 / sqrt((double)a.features) : a.scale;
    a.causal = tutti_attr_int(c->call->attrs, c->call->attr_count, "causal") != 0;
    a.first_query = tutti_attr_int(c->call->attrs, c->call->attr_count, "first_query");
    if (mask >= 0) {
        mask_sizes m = mask_sizes_of(&c->call->inputs[mask]);
        int64_t step = 1;
        for (int d = 3; d >= 0; d--) {
            a.mask_step[d] = m.own[d] == 1 ? 0 : step;
            step *= m.own[d];
        }
    }
    return a;
}

#define START(entry, rows, ltype, ...)                                                             \
    tutti__cuda_start(c, &tutti_cuda_source_attention, entry, tutti__cuda_ceil(rows, 8), 256,      \
                      (void *[]){__VA_ARGS__}, "-DTYPE=%s -DLTYPE=%s",                             \
                      tutti__cuda_dtype(c->call->inputs[Q].dtype), tutti__cuda_dtype(ltype))

/* A block for each query where there are few, whose keys' scores fit: 16 bytes at once. */
static int few_of(const tutti_cuda_call *c, const attention_shape *a)
{
    enum { MOST_ROWS = 2048, MOST_KEYS = 8192 };
    tutti_dtype dtype = c->call->inputs[Q].dtype;
    int per = 16 / (int)tutti_dtype_size(dtype);
    bool takes = dtype != TUTTI_F64 && a->batch * a->heads * a->queries <= MOST_ROWS &&
                 a->keys <= MOST_KEYS && a->features % per == 0 && a->values % per == 0 &&
                 a->values > 0 && a->queries < 64;
    return takes ? per : 0;
}

static tutti_status forward(const tutti_cuda_call *c)
{
    attention_shape a = shape_of(c, c->call->input_count > 3 ? 3 : -1);
    tutti_cu_pointer q = tutti__cuda_in(c, Q), k = tutti__cuda_in(c, K), v = tutti__cuda_in(c, V);
    tutti_cu_pointer mask = c->call->input_count > 3 ? tutti__cuda_in(c, 3) : 0;
    tutti_cu_pointer y = tutti__cuda_out(c, 0), l = tutti__cuda_out(c, 1);
    int per = few_of(c, &a);
    if (per > 0)
        return tutti__cuda_start(
            c, &tutti_cuda_source_attention, "attention_few", a.batch * a.heads * a.queries, 256,
            (void *[]){&q, &k, &v, &mask, &a, &y, &l}, "-DTYPE=%s -DLTYPE=%s -DPER=%d",
            tutti__cuda_dtype(c->call->inputs[Q].dtype),
            tutti__cuda_dtype(c->call->outputs[1].dtype), per);
    return START("attention", a.batch * a.heads * a.queries, c->call->outputs[1].dtype, &q, &k, &v,
                 &mask, &a, &y, &l);
}

static tutti_status gradient(const tutti_cuda_call *c)
{
    int64_t grads = tutti_attr_int(c->call->attrs, c->call->attr_count, "grads");
    int next = 5, dy = grads & 1 ? next++ : -1, dl = grads & 2 ? next++ : -1;
    int mask = c->call->input_count > next ? next : -1;
    bool of_mask = strstr(c->call->op->name, "_mask") != NULL;
    attention_shape a = shape_of(c, mask);
    tutti_dtype ltype = c->call->inputs[L].dtype;
    backward b = {tutti__cuda_in(c, Q),
                  tutti__cuda_in(c, K),
                  tutti__cuda_in(c, V),
                  tutti__cuda_in(c, Y),
                  dy >= 0 ? tutti__cuda_in(c, dy) : 0,
                  mask >= 0 ? tutti__cuda_in(c, mask) : 0,
                  tutti__cuda_in(c, L),
                  dl >= 0 ? tutti__cuda_in(c, dl) : 0};
    tutti_cu_pointer kept = tutti__cuda_work(c), first = of_mask ? 0 : tutti__cuda_out(c, 0);
    TUTTI_TRY(
        START("attention_queries", a.batch * a.heads * a.queries, ltype, &b, &a, &kept, &first));
    if (of_mask) {
        mask_sizes m = mask_sizes_of(&c->call->inputs[mask]);
        int64_t count = tutti__cuda_count(&c->call->outputs[0]);
        tutti_cu_pointer dmask = tutti__cuda_out(c, 0);
        return START("attention_mask", count, ltype, &b, &a, &m, &kept, &count, &dmask);
    }
    tutti_cu_pointer dk = tutti__cuda_out(c, 1), dv = tutti__cuda_out(c, 2);
    return START("attention_keys", a.batch * a.heads * a.keys, ltype, &b, &a, &kept, &dk, &dv);
}

static const char *const others[] = {"attention_backward", "attention_backward_mask", NULL};

static int attention_score(const tutti_kernel_query *query)
{
    const tutti_type *q = &query->node.inputs[Q], *v = &query->node.inputs[V];
    return q->dims[3] <= MOST_FEATURES && v->dims[3] <= MOST_FEATURES ? 50 : 0;
}

static size_t attention_workspace(const tutti_kernel_query *query)
{
    const tutti_type *q = &query->node.inputs[Q];
    return strcmp(query->node.op->name, "attention") == 0
               ? 0
               : (size_t)(q->dims[0] * q->dims[1] * q->dims[2]) * 16;
}

tutti_status tutti__cuda_attention_any(const tutti_cuda_call *c)
{
    return strcmp(c->call->op->name, "attention") == 0 ? forward(c) : gradient(c);
}

static const char *const variants[] = {"-DTYPE=float -DLTYPE=float", "-DTYPE=bf16 -DLTYPE=float",
                                       "-DTYPE=bf16 -DLTYPE=float -DPER=8", NULL};

const tutti_cuda_source tutti_cuda_source_attention = {
    .name = "attention",
    .text = &tutti__cuda_text_attention_cu,
    .variants = variants,
};

const tutti_cuda_kernel tutti_cuda_kernel_attention = {
    .name = "attention",
    .version = 1,
    .op = "attention",
    .ops = others,
    .score = attention_score,
    .workspace = attention_workspace,
    .run = tutti__cuda_attention_any,
};
