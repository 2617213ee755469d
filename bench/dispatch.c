/* dispatch.c: what it costs to run nothing much: a chain of scalar additions, and an empty run. */
#include <stdlib.h>

#include "base/params.h"
#include "cli/bench.h"

#define CHAIN 1000

typedef struct chain {
    tutti_session *session;
    tutti_sym input, last;
    tutti_tensor *value;
} chain;

static void run_chain(void *context)
{
    chain *c = context;
    tutti_tensor *out;
    tutti__bench_must(tutti_run(c->session, .feed = TUTTI_FEED({c->input, c->value}),
                                .fetch = TUTTI_FETCH({c->last, &out})));
    tutti_tensor_release(out);
}

static void run_empty(void *context)
{
    tutti__bench_must(tutti_run(((chain *)context)->session, .fetch = {0}));
}

/* Each addition adds the input, so none can be folded; TUTTI_FUSE=0 keeps them apart. */
static int run(int argc, char **argv, bool json)
{
    if (!tutti__bench_knows_all(argc, argv))
        return TUTTI_EXIT_USAGE;
    tutti_graph *graph;
    chain c;
    tutti__bench_must(tutti_graph_create(&graph));
    c.input = tutti_placeholder(graph, TUTTI_F32);
    c.last = c.input;
    for (int i = 0; i < CHAIN; i++)
        c.last = tutti_add(c.last, c.input);
    c.value = tutti__bench_tensor(TUTTI_F32, 0, NULL, 1);
    tutti__bench_must(tutti__param_set("FUSE", "0"));
    tutti__bench_must(tutti_session_open(&c.session, graph));
    double each = tutti__best_seconds(20, 50, run_chain, &c) / CHAIN * 1e9;
    const char *traced = getenv("TUTTI_TRACE_RING");
    bool trace = !traced || traced[0] != '0';
    tutti__report(
        json, &(tutti_result){"dispatch",
                              trace ? "scalar addition, trace on" : "scalar addition, trace off",
                              each, "ns", trace ? 100 : 25, false});
    double empty = tutti__best_seconds(20, 1000, run_empty, &c) * 1e6;
    tutti__report(json, &(tutti_result){"dispatch", "empty session run", empty, "us", 2, false});
    tutti__bench_must(tutti__param_set("FUSE", NULL));
    tutti_tensor_release(c.value);
    tutti_session_close(c.session);
    tutti_graph_destroy(graph);
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_dispatch = {
    .name = "dispatch",
    .summary = "scalar additions one by one; an empty run",
    .run = run,
};
