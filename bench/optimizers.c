/* optimizers.c: the update of every optimizer on 4 million weights against a copy of as many bytes
 * as it reads and writes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "cli/bench.h"
#include "nn/optimizers/optimizer.h"
#include "tables/optimizer_def.h"

#define COUNT (4 << 20)

typedef struct work {
    tutti_session *session;
    tutti_sym step;
    tutti_pool *pool;
    char *from, *to;
    size_t bytes;
} work;

static void run_step(void *context)
{
    work *w = context;
    tutti__bench_must(tutti_run(w->session, .target = w->step));
}

static void copy_piece(void *context, int64_t i)
{
    work *w = context;
    memcpy(w->to + (size_t)i * (w->bytes / 64), w->from + (size_t)i * (w->bytes / 64),
           w->bytes / 64);
}

static void copy(void *context)
{
    tutti__pool_run(((work *)context)->pool, 64, copy_piece, context);
}

/* The gradient is a variable, so that a step is the update and nothing else. */
static void measure(work *w, tutti_optimizer optimizer, double copied, bool json)
{
    tutti_graph *graph;
    tutti__bench_must(tutti_graph_create(&graph));
    tutti_sym variable = tutti_variable(graph, tutti_uniform_init(-1, 1, COUNT), .name = "w");
    tutti_sym gradient =
        tutti_variable(graph, tutti_uniform_init(-1, 1, COUNT), .name = "g", .not_trainable = true);
    tutti_grad grad = {.value = tutti_read(gradient)};
    w->step = tutti_apply_gradients(optimizer, 1, &variable, &grad);
    tutti__bench_must(tutti_session_open(&w->session, graph));
    tutti__bench_must(tutti_run(w->session, .target = tutti_initialize_variables(graph)));
    double seconds = tutti__best_seconds(20, 1, run_step, w);
    tutti_optimizer_slot slots[4];
    int slot_count = optimizer.def->slots ? optimizer.def->slots(&optimizer, slots) : 0;
    double bytes = 4.0 * COUNT * (3 + 2 * slot_count); /* w and slots both ways, g once */
    char name[64];
    snprintf(name, sizeof name, "%s, %d slots", optimizer.def->name, slot_count);
    tutti__report(json, &(tutti_result){"optimizers", name, bytes / seconds * 1e-9, "GB/s"});
    snprintf(name, sizeof name, "%s, %d slots, against a copy", optimizer.def->name, slot_count);
    tutti__report(json, &(tutti_result){"optimizers", name, bytes / seconds / copied, "x"});
    tutti_session_close(w->session);
    tutti_graph_destroy(graph);
}

static int run(int argc, char **argv, bool json)
{
    if (!tutti__bench_knows_all(argc, argv))
        return TUTTI_EXIT_USAGE;
    tutti_optimizer optimizer;
    work w = {.bytes = (size_t)64 << 20};
    w.from = calloc(2, w.bytes);
    w.to = w.from ? w.from + w.bytes : NULL;
    if (!w.from)
        tutti__bench_must(tutti_fail(TUTTI_NO_MEMORY, "no memory for a copy"));
    memset(w.from, 1, 2 * w.bytes);
    tutti__bench_must(tutti__pool_create(tutti__cpu_count(), -1, &w.pool));
    double copied = 2 * (double)w.bytes / tutti__best_seconds(50, 1, copy, &w);
    tutti__report(json, &(tutti_result){"optimizers", "copy of 64 MiB", copied * 1e-9, "GB/s"});
    for (const tutti_optimizer_def *const *def = tutti__optimizer_def_table; *def; def++) {
        tutti__bench_must(tutti_optimizer_by_name((*def)->name, 1e-3, &optimizer));
        measure(&w, optimizer, copied, json);
    }
    measure(&w, tutti_sgd(1e-3, .momentum = 0.9), copied, json);
    tutti__pool_destroy(w.pool);
    free(w.from);
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_optimizers = {
    .name = "optimizers",
    .summary = "the update of each optimizer against a copy of the bytes it moves",
    .run = run,
};
