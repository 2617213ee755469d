/* fused.c: a chain of ten element-wise operators on 64 MiB against one copy of the data. */
#include <string.h>

#include "base/pool.h"
#include "cli/bench.h"

#define COUNT (16 << 20)

typedef struct work {
    tutti_session *session;
    tutti_sym x, y;
    tutti_tensor *value;
    tutti_pool *pool;
    float *from, *to;
} work;

static tutti_sym cheap(tutti_sym x)
{
    tutti_sym y = tutti_add(tutti_mul(x, 1.5), x);
    y = tutti_sub(tutti_mul(y, y), x);
    y = tutti_relu(tutti_add(y, 0.25));
    y = tutti_maximum(tutti_neg(y), x);
    return tutti_abs(tutti_mul(y, x));
}

static tutti_sym dear(tutti_sym x)
{
    tutti_sym y = tutti_add(tutti_mul(x, 1.5), x);
    y = tutti_sub(tutti_mul(y, y), x);
    y = tutti_tanh(tutti_add(y, 0.25));
    y = tutti_maximum(tutti_neg(y), x);
    return tutti_exp(tutti_mul(y, x));
}

static void run_chain(void *context)
{
    work *w = context;
    tutti_tensor *out;
    tutti__bench_must(tutti_run(w->session, .feed = TUTTI_FEED({w->x, w->value}),
                                .fetch = TUTTI_FETCH({w->y, &out})));
    tutti_tensor_release(out);
}

static void copy_piece(void *context, int64_t i)
{
    work *w = context;
    memcpy(w->to + i * (COUNT / 64), w->from + i * (COUNT / 64), COUNT / 64 * sizeof(float));
}

static void copy(void *context)
{
    tutti__pool_run(((work *)context)->pool, 64, copy_piece, context);
}

static double chain_seconds(work *w, tutti_sym (*build)(tutti_sym))
{
    tutti_graph *graph;
    tutti__bench_must(tutti_graph_create(&graph));
    w->x = tutti_placeholder(graph, TUTTI_F32, COUNT);
    w->y = build(w->x);
    tutti__bench_must(tutti_session_open(&w->session, graph));
    double seconds = tutti__best_seconds(20, 1, run_chain, w);
    tutti_session_close(w->session);
    tutti_graph_destroy(graph);
    return seconds;
}

static int run(int argc, char **argv, bool json)
{
    if (!tutti__bench_knows_all(argc, argv))
        return TUTTI_EXIT_USAGE;
    work w = {.value = tutti__bench_tensor(TUTTI_F32, 1, (int64_t[]){COUNT}, 3)};
    tutti_tensor *to = tutti__bench_tensor(TUTTI_F32, 1, (int64_t[]){COUNT}, 4);
    w.from = tutti_tensor_data(w.value);
    w.to = tutti_tensor_data(to);
    tutti__bench_must(tutti__pool_create(tutti__bench_threads(), -1, &w.pool));
    double copied = tutti__best_seconds(20, 1, copy, &w);
    double limit = tutti__bench_wide_vectors() ? 2 : 3;
    tutti__report(json, &(tutti_result){"fused", "copy of 64 MiB", copied * 1e3, "ms"});
    double seconds = chain_seconds(&w, cheap);
    tutti__report(json, &(tutti_result){"fused", "ten cheap operators", seconds * 1e3, "ms"});
    tutti__report(json, &(tutti_result){"fused", "ten cheap operators, against a copy",
                                        seconds / copied, "x", limit});
    seconds = chain_seconds(&w, dear);
    tutti__report(json, &(tutti_result){"fused", "with two transcendentals", seconds * 1e3, "ms"});
    tutti__report(json, &(tutti_result){"fused", "with two transcendentals, against a copy",
                                        seconds / copied, "x", 4});
    tutti__pool_destroy(w.pool);
    tutti_tensor_release(w.value);
    tutti_tensor_release(to);
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_fused = {
    .name = "fused",
    .summary = "chains of element-wise operators on 64 MiB against a copy",
    .run = run,
};
