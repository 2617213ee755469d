/* gemm.c: products as training has them: square ones through the session, whole; small, skinny,
 * batched, transposed and bf16 ones by the time in their kernels. */
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "bench/operator.h"

/* [batch, m, k] times [batch, k, n]; "tn": a is stored transposed (a weight's gradient), "nt": b is
 * (an input's). */
static const struct shape {
    const char *name, *form;
    int64_t batch, m, k, n;
    tutti_dtype dtype;
} shapes[] = {
    {"lecture dense", "nn", 1, 64, 5408, 64, TUTTI_F32},
    {"lecture dense, weight", "tn", 1, 5408, 64, 64, TUTTI_F32},
    {"lecture dense, input", "nt", 1, 64, 64, 5408, TUTTI_F32},
    {"lecture logits", "nn", 1, 64, 64, 10, TUTTI_F32},
    {"LSTM gates", "nn", 1, 32, 192, 512, TUTTI_F32},
    {"transformer up", "nn", 1, 2048, 128, 512, TUTTI_F32},
    {"transformer down", "nn", 1, 2048, 512, 128, TUTTI_F32},
    {"transformer up, weight", "tn", 1, 128, 2048, 512, TUTTI_F32},
    {"transformer up, input", "nt", 1, 2048, 512, 128, TUTTI_F32},
    {"attention scores", "nt", 128, 64, 32, 64, TUTTI_F32},
    {"attention values", "nn", 128, 64, 64, 32, TUTTI_F32},
    {"transformer up", "nn", 1, 2048, 128, 512, TUTTI_BF16},
    {"transformer up, weight", "tn", 1, 128, 2048, 512, TUTTI_BF16},
    {"attention scores", "nt", 128, 64, 32, 64, TUTTI_BF16},
    {"square", "nn", 1, 1024, 1024, 1024, TUTTI_F32},
    {"square", "nn", 1, 1024, 1024, 1024, TUTTI_BF16},
};

typedef struct product {
    tutti_session *session;
    tutti_sym a, b, c;
    tutti_tensor *x, *y;
} product;

static void multiply(void *context)
{
    product *p = context;
    tutti_tensor *out;
    tutti__bench_must(tutti_run(p->session, .feed = TUTTI_FEED({p->a, p->x}, {p->b, p->y}),
                                .fetch = TUTTI_FETCH({p->c, &out})));
    tutti_tensor_release(out);
}

static void squares(bool json)
{
    tutti_graph *graph;
    product p;
    tutti__bench_must(tutti_graph_create(&graph));
    p.a = tutti_placeholder(graph, TUTTI_F32, TUTTI_ANY, TUTTI_ANY);
    p.b = tutti_placeholder(graph, TUTTI_F32, TUTTI_ANY, TUTTI_ANY);
    p.c = tutti_matmul(p.a, p.b);
    tutti__bench_must(tutti_session_open(&p.session, graph));
    for (int64_t n = 256; n <= 2048; n *= 2) {
        char work[64];
        p.x = tutti__bench_tensor(TUTTI_F32, 2, (int64_t[]){n, n}, 1);
        p.y = tutti__bench_tensor(TUTTI_F32, 2, (int64_t[]){n, n}, 2);
        int times = n < 512 ? 20 : n < 1024 ? 4 : 1;
        double seconds = tutti__best_seconds(20, times, multiply, &p);
        snprintf(work, sizeof work, "f32 product %lld", (long long)n);
        tutti__report(json, &(tutti_result){"gemm", work,
                                            2e-9 * (double)n * (double)n * (double)n / seconds,
                                            "GFLOP/s"});
        tutti_tensor_release(p.x);
        tutti_tensor_release(p.y);
    }
    tutti_session_close(p.session);
    tutti_graph_destroy(graph);
}

/* Square ones stand last, f32 before bf16. */
static void compare_types(const double *speeds, bool json)
{
    size_t last = sizeof shapes / sizeof *shapes - 1;
    tutti__report(json, &(tutti_result){"gemm", "bf16 product 1024 against f32",
                                        speeds[last] / speeds[last - 1], "times",
                                        tutti__cpu()->amx_bf16 ? 3 : 0, true});
}

static double seconds_of(const struct shape *s)
{
    bool ta = s->form[0] == 't', tb = s->form[1] == 't';
    int64_t a[] = {s->batch, ta ? s->k : s->m, ta ? s->m : s->k},
            b[] = {s->batch, tb ? s->n : s->k, tb ? s->k : s->n};
    int first = s->batch == 1, rank = 3 - first;
    tutti_graph *graph;
    tutti__bench_must(tutti_graph_create(&graph));
    tutti_type left = {.dtype = s->dtype, .rank = rank}, right = left;
    memcpy(left.dims, a + first, (size_t)rank * sizeof *a);
    memcpy(right.dims, b + first, (size_t)rank * sizeof *b);
    tutti_feed feeds[] = {
        {(tutti_placeholder)(graph, left), tutti__bench_tensor(s->dtype, rank, a + first, 1)},
        {(tutti_placeholder)(graph, right), tutti__bench_tensor(s->dtype, rank, b + first, 2)},
    };
    tutti_sym y = tutti_matmul(feeds[0].sym, feeds[1].sym, .transpose_a = ta, .transpose_b = tb);
    double flops = 2.0 * (double)(s->batch * s->m) * (double)(s->k * s->n);
    double seconds = tutti__operator_seconds(graph, y, 2, feeds, flops > 1e9 ? 10 : 50);
    tutti_tensor_release(feeds[0].value);
    tutti_tensor_release(feeds[1].value);
    tutti_graph_destroy(graph);
    return seconds;
}

static int run(int argc, char **argv, bool json)
{
    double speeds[sizeof shapes / sizeof *shapes];
    if (!tutti__bench_knows_all(argc, argv))
        return TUTTI_EXIT_USAGE;
    squares(json);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *s = &shapes[i];
        char work[80];
        snprintf(work, sizeof work, "%s %s, %lld x %lld x %lld x %lld", tutti_dtype_name(s->dtype),
                 s->name, (long long)s->batch, (long long)s->m, (long long)s->k, (long long)s->n);
        double flops = 2.0 * (double)(s->batch * s->m) * (double)(s->k * s->n);
        speeds[i] = flops / seconds_of(s) * 1e-9;
        tutti__report(json, &(tutti_result){"gemm", work, speeds[i], "GFLOP/s"});
    }
    compare_types(speeds, json);
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_gemm = {
    .name = "gemm",
    .summary = "products: square ones, and those of training",
    .run = run,
};
