/* gemm.c: square products through the session. */
#include <stdio.h>

#include "cli/bench.h"

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

static int run(int argc, char **argv, bool json)
{
    (void)argc, (void)argv;
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
        double seconds = tutti__best_seconds(n > 1000 ? 5 : 20,
                                             n < 512    ? 20
                                             : n < 1024 ? 4
                                                        : 1,
                                             multiply, &p);
        snprintf(work, sizeof work, "f32 product %lld", (long long)n);
        tutti__report(json, &(tutti_result){"gemm", work,
                                            2e-9 * (double)n * (double)n * (double)n / seconds,
                                            "GFLOP/s"});
        tutti_tensor_release(p.x);
        tutti_tensor_release(p.y);
    }
    tutti_session_close(p.session);
    tutti_graph_destroy(graph);
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_gemm = {
    .name = "gemm",
    .summary = "square f32 products, 256 to 2048",
    .run = run,
};
