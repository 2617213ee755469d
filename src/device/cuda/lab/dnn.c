/* dnn.c: checks of convolutions and attention by cuDNN. */
#include "device/cuda/dnn/attention.h"
#include "device/cuda/dnn/convolution.h"
#include "device/cuda/lab/checks.h"

static tutti_status open_dnn(const tutti_dnn **ret, tutti_dnn_handle *ret_handle)
{
    TUTTI_TRY(tutti__cuda_dnn(ret));
    return tutti__cuda_dnn_check(*ret, (*ret)->cudnnCreate(ret_handle), "a handle");
}

typedef struct convolved {
    tutti_cuda_convolution shape;
    tutti_cuda_graph graph;
    tutti_cu_pointer x, w, y, workspace;
} convolved;

static tutti_status call_convolution(lab_bench *lab, void *context)
{
    convolved *c = context;
    return tutti__cuda_convolution_run(&c->graph, lab->on.stream, c->x, c->w, c->y, c->workspace);
}

/* All three ways from x, w and dy; each of ret_… may be NULL. */
static void convolve(const tutti_cuda_convolution *c, const double *x, const double *w,
                     const double *dy, double *y, double *dx, double *dw)
{
    int64_t size[2];
    tutti__cuda_convolution_size(c, size);
    for (int64_t n = 0; n < c->batch; n++)
        for (int64_t i = 0; i < size[0]; i++)
            for (int64_t j = 0; j < size[1]; j++)
                for (int64_t o = 0; o < c->out; o++)
                    for (int64_t a = 0; a < c->kernel[0]; a++)
                        for (int64_t b = 0; b < c->kernel[1]; b++) {
                            int64_t u = i * c->stride[0] + a * c->dilation[0] - c->before[0];
                            int64_t v = j * c->stride[1] + b * c->dilation[1] - c->before[1];
                            if (u < 0 || v < 0 || u >= c->height || v >= c->width)
                                continue;
                            int64_t at = ((n * c->height + u) * c->width + v) * c->in;
                            int64_t wt = ((o * c->kernel[0] + a) * c->kernel[1] + b) * c->in;
                            int64_t yt = ((n * size[0] + i) * size[1] + j) * c->out + o;
                            for (int64_t k = 0; k < c->in; k++) {
                                y[yt] += x[at + k] * w[wt + k];
                                dx[at + k] += dy[yt] * w[wt + k];
                                dw[wt + k] += dy[yt] * x[at + k];
                            }
                        }
}

static tutti_status check_convolution(lab_bench *lab, const tutti_dnn *dnn, tutti_dnn_handle handle,
                                      tutti_cuda_convolution shape)
{
    static const char *const names[] = {"forward", "data", "filter"};
    int64_t size[2], counts[3];
    tutti_cu_pointer given[3], made[3];
    double *values[3], *expected[3],
        limit = shape.type != TUTTI_CUDA_F32 ? 5e-3
                : shape.tf32                 ? 2e-3
                                             : 1e-5;
    tutti__cuda_convolution_size(&shape, size);
    counts[0] = shape.batch * shape.height * shape.width * shape.in;
    counts[1] = shape.out * shape.kernel[0] * shape.kernel[1] * shape.in;
    counts[2] = shape.batch * size[0] * size[1] * shape.out;
    for (int i = 0; i < 3; i++) {
        TUTTI_TRY(lab_numbers(lab, shape.type, counts[i], -1, 1, &values[i], &given[i]));
        TUTTI_TRY(lab_memory(lab, (size_t)counts[i] * 4, &made[i]));
        expected[i] = calloc((size_t)counts[i], 8);
    }
    convolve(&shape, values[0], values[1], values[2], expected[2], expected[0], expected[1]);
    for (int kind = 0; kind < 3; kind++) {
        static const int writes[] = {2, 0, 1};
        int at = writes[kind];
        convolved c = {.shape = shape, .x = given[0], .w = given[1], .y = given[2]};
        tutti_cu_pointer *parts[] = {&c.x, &c.w, &c.y};
        char what[64];
        double *got;
        c.shape.kind = (tutti_cuda_convolution_kind)kind;
        *parts[at] = made[at];
        snprintf(what, sizeof what, "%s %lld to %lld %s%s", tutti__cuda_type_name(shape.type),
                 (long long)shape.in, (long long)shape.out, names[kind],
                 shape.deterministic ? ", deterministic" : "");
        tutti_status status = tutti__cuda_convolution_plan(dnn, handle, &c.shape, &c.graph);
        if (status == TUTTI_OK)
            status = lab_memory(lab, (size_t)c.graph.workspace + 16, &c.workspace);
        if (status == TUTTI_OK)
            status = call_convolution(lab, &c);
        if (status == TUTTI_OK)
            status = lab_read(lab, shape.type, made[at], counts[at], &got);
        if (status != TUTTI_OK) {
            lab_pass(lab, false, what, "%s", tutti_error_message());
            continue;
        }
        lab_compare(lab, what, got, expected[at], counts[at], limit);
        free(got);
        tutti__cuda_graph_free(&c.graph);
    }
    for (int i = 0; i < 3; i++)
        free(values[i]), free(expected[i]);
    return TUTTI_OK;
}

static tutti_status time_convolution(lab_bench *lab, const tutti_dnn *dnn, tutti_dnn_handle handle,
                                     tutti_cuda_convolution shape, const char *name)
{
    convolved c = {.shape = shape};
    int64_t size[2];
    char what[64];
    static const char *const kinds[] = {"forward", "data", "filter"};
    tutti__cuda_convolution_size(&shape, size);
    int64_t counts[] = {shape.batch * shape.height * shape.width * shape.in,
                        shape.out * shape.kernel[0] * shape.kernel[1] * shape.in,
                        shape.batch * size[0] * size[1] * shape.out};
    tutti_cu_pointer *parts[] = {&c.x, &c.w, &c.y};
    for (int i = 0; i < 3; i++) {
        TUTTI_TRY(lab_memory(lab, (size_t)counts[i] * 2, parts[i]));
        TUTTI_TRY(tutti__cuda_random_uniform(lab->on, shape.type, (tutti_random_key){1, 1}, 0,
                                             counts[i], -1, 2, *parts[i]));
    }
    for (int kind = 0; kind < 3; kind++) {
        c.shape.kind = (tutti_cuda_convolution_kind)kind;
        TUTTI_TRY(tutti__cuda_convolution_plan(dnn, handle, &c.shape, &c.graph));
        TUTTI_TRY(lab_memory(lab, (size_t)c.graph.workspace + 16, &c.workspace));
        snprintf(what, sizeof what, "%s %s", name, kinds[kind]);
        TUTTI_TRY(lab_time(lab, what, call_convolution, &c, 0,
                           2.0 * (double)counts[2] * (double)counts[1] / (double)shape.out));
        tutti__cuda_graph_free(&c.graph);
    }
    return TUTTI_OK;
}

tutti_status lab_check_convolution(lab_bench *lab)
{
    const tutti_dnn *dnn;
    tutti_dnn_handle handle;
    tutti_cuda_convolution c = {.batch = 3,
                                .height = 14,
                                .width = 17,
                                .in = 16,
                                .out = 24,
                                .kernel = {3, 3},
                                .stride = {1, 1},
                                .dilation = {1, 1},
                                .before = {1, 1},
                                .after = {1, 1}};
    TUTTI_TRY(open_dnn(&dnn, &handle));
    c.tf32 = true;
    TUTTI_TRY(check_convolution(lab, dnn, handle, c));
    c.tf32 = false;
    for (int type = 0; type < 3; type++) {
        c.type = (tutti_cuda_type)type;
        TUTTI_TRY(check_convolution(lab, dnn, handle, c));
    }
    c.deterministic = true;
    TUTTI_TRY(check_convolution(lab, dnn, handle, c));
    c.type = TUTTI_CUDA_BF16;
    c.stride[0] = c.stride[1] = 2;
    TUTTI_TRY(check_convolution(lab, dnn, handle, c));
    c = (tutti_cuda_convolution){.type = TUTTI_CUDA_F32,
                                 .batch = 2,
                                 .height = 28,
                                 .width = 28,
                                 .in = 1,
                                 .out = 32,
                                 .kernel = {3, 3},
                                 .stride = {1, 1},
                                 .dilation = {1, 1}};
    TUTTI_TRY(check_convolution(lab, dnn, handle, c));
    c = (tutti_cuda_convolution){.type = TUTTI_CUDA_BF16,
                                 .batch = 256,
                                 .height = 56,
                                 .width = 56,
                                 .in = 64,
                                 .out = 64,
                                 .kernel = {3, 3},
                                 .stride = {1, 1},
                                 .dilation = {1, 1},
                                 .before = {1, 1},
                                 .after = {1, 1}};
    TUTTI_TRY(time_convolution(lab, dnn, handle, c, "bf16 56x56x64 b256"));
    c.height = c.width = 14;
    c.in = c.out = 256;
    TUTTI_TRY(time_convolution(lab, dnn, handle, c, "bf16 14x14x256 b256"));
    (void)dnn->cudnnDestroy(handle);
    return TUTTI_OK;
}

typedef struct attended {
    tutti_cuda_attention shape;
    tutti_cuda_graph graph, backward;
    tutti_cuda_attention_gradient g;
} attended;

static tutti_status call_attention(lab_bench *lab, void *context)
{
    attended *a = context;
    return tutti__cuda_attention_run(&a->graph, &a->shape, lab->on.stream, a->g.q, a->g.k, a->g.v,
                                     a->g.o, a->g.stats, a->g.workspace);
}

static tutti_status call_attention_gradient(lab_bench *lab, void *context)
{
    attended *a = context;
    return tutti__cuda_attention_gradient_run(&a->backward, &a->shape, lab->on, &a->g);
}

/* Heads lie beside each other in rows of [batch, rows, 3, heads, size], as a layer's product gives
 * q, k and v. */
static attended make_attention(int64_t batch, int64_t heads, int64_t rows, int64_t size,
                               bool causal)
{
    attended a = {.shape = {.type = TUTTI_CUDA_BF16,
                            .batch = batch,
                            .heads = heads,
                            .queries = rows,
                            .keys = rows,
                            .size = size,
                            .causal = causal,
                            .scale = 1.0f / sqrtf((float)size)}};
    for (int i = 0; i < 3; i++) {
        int64_t stride = i == 0 ? rows * 3 * heads * size : i == 1 ? size : 3 * heads * size;
        a.shape.q_strides[i] = a.shape.k_strides[i] = a.shape.v_strides[i] = stride;
        a.shape.o_strides[i] = i == 0 ? rows * heads * size : i == 1 ? size : heads * size;
    }
    return a;
}

static void attend(const tutti_cuda_attention *a, const double *q, const double *k, const double *v,
                   const double *d_o, double *o, double *dq, double *dk, double *dv)
{
    int64_t S = a->keys, D = a->size;
    double *p = malloc((size_t)S * 8);
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++)
            for (int64_t i = 0; i < a->queries; i++) {
                int64_t base = b * a->q_strides[0] + h * D, row = base + i * a->q_strides[2];
                int64_t out = b * a->o_strides[0] + h * D + i * a->o_strides[2];
                int64_t end = a->causal ? i + 1 : S;
                double sum = 0, dot = 0;
                for (int64_t j = 0; j < end; j++) {
                    double s = 0;
                    for (int64_t d = 0; d < D; d++)
                        s += q[row + d] * k[base + j * a->k_strides[2] + d];
                    sum += p[j] = exp(s * (double)a->scale);
                }
                for (int64_t j = 0; j < end; j++)
                    for (int64_t d = 0; d < D; d++)
                        o[out + d] += (p[j] / sum) * v[base + j * a->v_strides[2] + d];
                for (int64_t d = 0; d < D; d++)
                    dot += o[out + d] * d_o[out + d];
                for (int64_t j = 0; j < end; j++) {
                    int64_t at = base + j * a->k_strides[2];
                    double dp = 0;
                    for (int64_t d = 0; d < D; d++)
                        dp += d_o[out + d] * v[at + d];
                    double ds = p[j] / sum * (dp - dot) * (double)a->scale;
                    for (int64_t d = 0; d < D; d++) {
                        dq[row + d] += ds * k[at + d];
                        dk[at + d] += ds * q[row + d];
                        dv[at + d] += p[j] / sum * d_o[out + d];
                    }
                }
            }
    free(p);
}

/* qkv in one piece of memory; what the gradient needs beside it. */
static tutti_status give_memory(lab_bench *lab, attended *a, tutti_cu_pointer qkv,
                                tutti_cu_pointer d_o, tutti_cu_pointer *ret_dqkv)
{
    const tutti_cuda_attention *s = &a->shape;
    size_t part = (size_t)(s->heads * s->size) * 2, rows = (size_t)(s->batch * s->queries);
    int64_t most =
        a->graph.workspace > a->backward.workspace ? a->graph.workspace : a->backward.workspace;
    a->g.q = qkv;
    a->g.k = qkv + part;
    a->g.v = qkv + 2 * part;
    a->g.d_o = d_o;
    TUTTI_TRY(lab_memory(lab, rows * part, &a->g.o));
    TUTTI_TRY(lab_memory(lab, rows * (size_t)s->heads * 4, &a->g.stats));
    TUTTI_TRY(lab_memory(lab, rows * (size_t)s->heads * 4, &a->g.sums));
    TUTTI_TRY(lab_memory(lab, rows * part * 2, &a->g.accumulator));
    TUTTI_TRY(lab_memory(lab, 3 * rows * part, ret_dqkv));
    a->g.dq = *ret_dqkv;
    a->g.dk = *ret_dqkv + part;
    a->g.dv = *ret_dqkv + 2 * part;
    return lab_memory(lab, (size_t)most + 16, &a->g.workspace);
}

static tutti_status check_attention(lab_bench *lab, const tutti_dnn *dnn, tutti_dnn_handle handle,
                                    bool causal)
{
    attended a = make_attention(2, 3, 128, 64, causal);
    int64_t count = 2 * 128 * 3 * 64;
    double *x, *d_o, *o, *dx, *o0 = calloc((size_t)count, 8), *dx0 = calloc((size_t)count * 3, 8);
    tutti_cu_pointer qkv, given, dqkv;
    const char *what = causal ? "causal 2x3x128x64" : "2x3x128x64";
    TUTTI_TRY(lab_numbers(lab, TUTTI_CUDA_BF16, 3 * count, -1, 1, &x, &qkv));
    TUTTI_TRY(lab_numbers(lab, TUTTI_CUDA_BF16, count, -1, 1, &d_o, &given));
    TUTTI_TRY(tutti__cuda_attention_plan(dnn, handle, &a.shape, &a.graph));
    tutti_status backward = tutti__cuda_attention_gradient_plan(dnn, handle, &a.shape, &a.backward);
    if (backward != TUTTI_OK)
        lab_pass(lab, false, "gradient's plan", "%s", tutti_error_message());
    TUTTI_TRY(give_memory(lab, &a, qkv, given, &dqkv));
    TUTTI_TRY(call_attention(lab, &a));
    attend(&a.shape, x, x + 192, x + 384, d_o, o0, dx0, dx0 + 192, dx0 + 384);
    TUTTI_TRY(lab_read(lab, TUTTI_CUDA_BF16, a.g.o, count, &o));
    lab_compare(lab, what, o, o0, count, 1e-2);
    if (backward == TUTTI_OK) {
        TUTTI_TRY(call_attention_gradient(lab, &a));
        TUTTI_TRY(lab_read(lab, TUTTI_CUDA_BF16, dqkv, 3 * count, &dx));
        lab_compare(lab, "its gradient", dx, dx0, 3 * count, 1.5e-2);
        free(dx);
        tutti__cuda_graph_free(&a.backward);
    }
    tutti__cuda_graph_free(&a.graph);
    free(x), free(d_o), free(o), free(o0), free(dx0);
    return TUTTI_OK;
}

static tutti_status time_attention(lab_bench *lab, const tutti_dnn *dnn, tutti_dnn_handle handle)
{
    attended a = make_attention(64, 12, 1024, 64, true);
    int64_t count = 64 * 1024 * 12 * 64;
    double flops = 4.0 * 64 * 12 * 1024.0 * 1024 * 64 / 2;
    tutti_cu_pointer qkv, d_o, dqkv;
    TUTTI_TRY(lab_memory(lab, (size_t)count * 6, &qkv));
    TUTTI_TRY(lab_memory(lab, (size_t)count * 2, &d_o));
    TUTTI_TRY(tutti__cuda_random_uniform(lab->on, TUTTI_CUDA_BF16, (tutti_random_key){1, 1}, 0,
                                         3 * count, -1, 2, qkv));
    TUTTI_TRY(tutti__cuda_random_uniform(lab->on, TUTTI_CUDA_BF16, (tutti_random_key){1, 2}, 0,
                                         count, -1, 2, d_o));
    TUTTI_TRY(tutti__cuda_attention_plan(dnn, handle, &a.shape, &a.graph));
    tutti_status backward = tutti__cuda_attention_gradient_plan(dnn, handle, &a.shape, &a.backward);
    TUTTI_TRY(give_memory(lab, &a, qkv, d_o, &dqkv));
    TUTTI_TRY(lab_time(lab, "causal 64x12x1024x64", call_attention, &a, 0, flops));
    tutti__cuda_graph_free(&a.graph);
    if (backward != TUTTI_OK)
        return TUTTI_OK;
    TUTTI_TRY(lab_time(lab, "its gradient", call_attention_gradient, &a, 0, 2.5 * flops));
    tutti__cuda_graph_free(&a.backward);
    return TUTTI_OK;
}

tutti_status lab_check_attention(lab_bench *lab)
{
    const tutti_dnn *dnn;
    tutti_dnn_handle handle;
    TUTTI_TRY(open_dnn(&dnn, &handle));
    TUTTI_TRY(check_attention(lab, dnn, handle, false));
    TUTTI_TRY(check_attention(lab, dnn, handle, true));
    TUTTI_TRY(time_attention(lab, dnn, handle));
    (void)dnn->cudnnDestroy(handle);
    return TUTTI_OK;
}
