/* gemm_libraries.c: our square products against the libraries' that this machine has.
 *
 * A library runs under our pool (in the pieces of our plan, or in one piece a thread) and with
 * threads of its own. Every contender has a process of its own, and they take turns
 * (bench/turns.h): a share is the median of what the turns that stand beside each other say, since
 * the best turn of many contenders is luckier than the best of one. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "bench/turns.h"
#include "cli/bench.h"
#include "device/cpu/gemm/gemm.h"
#include "tables/gemm_engine.h"

enum {
    SIZES = 4,
    FIRST_SIZE = 256,
    MOST_CONTENDERS = 32,
    TRIAL_TURNS = 3,
    MOST_ROUNDS = 1000,
    LEAST_CALLS = 2
};
#define TURN_SECONDS 0.02
#define CALL_SECONDS 1.0 /* a product that takes longer is left out */

typedef struct contender {
    char name[48]; /* "session", "plain", "blis", "blis, by threads", "blis, own threads" */
    tutti_turns turns;
    double *speeds[SIZES]; /* GFLOP/s of each turn; 0 when it does not run */
} contender;

typedef struct product {
    bool made, slow;
    tutti_gemm gemm;
    tutti_gemm_plan plan;
    void *workspace;
    tutti_pool *pool;
    void (*multiply)(const tutti_gemm *gemm);
    tutti_session *session;
    tutti_sym a, b, c;
    tutti_tensor *x, *y;
} product;

/* What the process of one contender has. */
typedef struct player {
    const tutti_gemm_engine *engine;
    void (*run)(void *context);
    product common, products[SIZES];
} player;

static void run_session(void *context)
{
    product *p = context;
    tutti_tensor *out;
    tutti__bench_must(tutti_run(p->session, .feed = TUTTI_FEED({p->a, p->x}, {p->b, p->y}),
                                .fetch = TUTTI_FETCH({p->c, &out})));
    tutti_tensor_release(out);
}

static void run_plan(void *context)
{
    product *p = context;
    tutti__gemm_run(&p->plan, p->pool, &p->gemm, p->workspace);
}

static void rows_of_one_thread(void *context, int64_t index)
{
    product *p = context;
    tutti_gemm part = p->gemm;
    int64_t threads = tutti__pool_threads(p->pool);
    int64_t from = part.m * index / threads;
    part.m = part.m * (index + 1) / threads - from;
    part.a += from * part.lda;
    part.c += from * part.ldc;
    p->multiply(&part);
}

static void run_by_threads(void *context)
{
    product *p = context;
    tutti__pool_run(p->pool, tutti__pool_threads(p->pool), rows_of_one_thread, p);
}

static void run_call(void *context)
{
    product *p = context;
    p->multiply(&p->gemm);
}

/* oneDNN's product without the engine's order to use one thread. */
typedef int dnnl_sgemm_function(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k,
                                float alpha, const float *a, int64_t lda, const float *b,
                                int64_t ldb, float beta, float *c, int64_t ldc);
static dnnl_sgemm_function *dnnl_sgemm;

static void multiply_onednn(const tutti_gemm *g)
{
    dnnl_sgemm('N', 'N', g->m, g->n, g->k, 1, g->a, g->lda, g->b, g->ldb, 0, g->c, g->ldc);
}

/* Gives a loaded library threads of its own; false when there is no way. */
static bool own_threads(const tutti_gemm_engine *engine, int64_t threads, product *p)
{
    static const struct {
        const char *engine, *files[2], *function;
    } ways[] = {
        {"blis", {"libblis.so.4", "libblis.so"}, "bli_thread_set_num_threads"},
        {"openblas", {"libopenblas.so.0", "libopenblas.so"}, "openblas_set_num_threads"},
        {"onednn", {"libdnnl.so.3", "libdnnl.so.2"}, "omp_set_num_threads"},
    };
    for (size_t i = 0; i < TUTTI_COUNT(ways); i++) {
        if (strcmp(engine->name, ways[i].engine) != 0)
            continue;
        void *handle = dlopen(ways[i].files[0], RTLD_NOW | RTLD_NOLOAD);
        handle = handle ? handle : dlopen(ways[i].files[1], RTLD_NOW | RTLD_NOLOAD);
        void *set = handle ? dlsym(handle, ways[i].function) : NULL;
        if (set == NULL)
            return false;
        /* BLIS takes 64 bits, the others 32; both read one register. */
        ((void (*)(int64_t))set)(threads);
        p->multiply = engine->multiply;
        if (strcmp(engine->name, "onednn") == 0) {
            dnnl_sgemm = (dnnl_sgemm_function *)dlsym(handle, "dnnl_sgemm");
            p->multiply = multiply_onednn;
        }
        return true;
    }
    return false;
}

static void make_product(product *p, int64_t n, const tutti_gemm_engine *engine)
{
    tutti_tensor *c = tutti__bench_tensor(TUTTI_F32, 2, (int64_t[]){n, n}, 3);
    p->x = tutti__bench_tensor(TUTTI_F32, 2, (int64_t[]){n, n}, 1);
    p->y = tutti__bench_tensor(TUTTI_F32, 2, (int64_t[]){n, n}, 2);
    p->gemm = (tutti_gemm){.m = n,
                           .n = n,
                           .k = n,
                           .lda = n,
                           .ldb = n,
                           .ldc = n,
                           .a = tutti_tensor_data(p->x),
                           .b = tutti_tensor_data(p->y),
                           .c = tutti_tensor_data(c)};
    p->plan = tutti__gemm_plan(n, n, n, TUTTI_GEMM_PLAIN);
    p->plan.engine = engine;
    p->workspace = aligned_alloc(64, (tutti__gemm_workspace(&p->plan) + 64) / 64 * 64);
    if (p->workspace == NULL)
        tutti__bench_must(
            tutti_fail(TUTTI_NO_MEMORY, "no memory for a product of %lld", (long long)n));
}

static void open_session(product *p)
{
    tutti_graph *graph;
    tutti__bench_must(tutti_graph_create(&graph));
    p->a = tutti_placeholder(graph, TUTTI_F32, TUTTI_ANY, TUTTI_ANY);
    p->b = tutti_placeholder(graph, TUTTI_F32, TUTTI_ANY, TUTTI_ANY);
    p->c = tutti_matmul(p->a, p->b);
    tutti__bench_must(tutti_session_open(&p->session, graph));
}

static double seconds_of(void (*run)(void *context), product *p)
{
    double start = tutti__seconds();
    run(p);
    return tutti__seconds() - start;
}

/* GFLOP/s of the fastest call of a turn. */
static double take_turn(void *context, int size)
{
    player *us = context;
    product *p = &us->products[size];
    double least = HUGE_VAL, left = TURN_SECONDS;
    if (!p->made) {
        *p = us->common;
        make_product(p, FIRST_SIZE << size, us->engine);
        p->made = true;
        us->run(p); /* a session chooses its kernel */
        p->slow = seconds_of(us->run, p) > CALL_SECONDS;
    }
    for (int calls = 0; (left > 0 || calls < LEAST_CALLS) && !p->slow; calls++) {
        double seconds = seconds_of(us->run, p);
        least = seconds < least ? seconds : least;
        left -= seconds;
    }
    return 2e-9 * (double)p->gemm.m * (double)p->gemm.n * (double)p->gemm.k / least;
}

/* In a process of its own, which takes everything with it when it ends. */
static int run_contender(const char *name)
{
    static player p;
    char library[48];
    snprintf(library, sizeof library, "%.*s", (int)strcspn(name, ","), name);
    const char *how = strchr(name, ',');
    if (strcmp(name, "session") == 0) {
        open_session(&p.common);
        p.run = run_session;
    } else if (strcmp(name, "plain") == 0) {
        p.run = run_plan;
    } else {
        if (tutti__gemm_engine_load(library, &p.engine) != TUTTI_OK)
            return tutti__complain("%s", tutti_error_message());
        p.common.multiply = p.engine->multiply;
        p.run = how ? run_by_threads : run_plan;
    }
    if (how && strcmp(how, ", own threads") == 0) {
        p.run = run_call;
        if (!own_threads(p.engine, tutti__bench_threads(), &p.common))
            return TUTTI_EXIT_FAILED;
    } else if (p.run != run_session) {
        tutti__bench_must(tutti__pool_create(tutti__bench_threads(), -1, &p.common.pool));
    }
    tutti__turns_serve(take_turn, &p);
    return TUTTI_EXIT_OK;
}

/* The session first; then whoever might be faster. */
static int list_contenders(contender *list)
{
    static const char *const ways[] = {"", ", by threads", ", own threads"};
    int count = 2;
    strcpy(list[0].name, "session");
    strcpy(list[1].name, "plain");
    for (const tutti_gemm_engine *const *e = tutti__gemm_engine_table; *e; e++)
        for (size_t i = 0; i < TUTTI_COUNT(ways) && count < MOST_CONTENDERS; i++)
            snprintf(list[count++].name, sizeof list->name, "%s%s", (*e)->name, ways[i]);
    return count;
}

/* Of `us` against `them`, turn by turn. */
static double median_ratio(const double *us, const double *them, int64_t rounds)
{
    double ratios[MOST_ROUNDS];
    for (int64_t r = 0; r < rounds; r++)
        ratios[r] = us[r] / them[r];
    return ratios[tutti__bench_middle(ratios, rounds)];
}

static double highest(const double *speeds, int64_t count)
{
    double best = 0;
    for (int64_t i = 0; i < count; i++)
        best = speeds[i] > best ? speeds[i] : best;
    return best;
}

static void report_size(bool json, const contender *list, int count, int s, int64_t rounds)
{
    char work[96];
    double share = 1;
    for (int i = 0; i < count; i++) {
        double best = highest(list[i].speeds[s], rounds);
        if (best == 0)
            continue;
        snprintf(work, sizeof work, "%d: %.47s", FIRST_SIZE << s, list[i].name);
        tutti__report(json, &(tutti_result){"gemm_libraries", work, best, "GFLOP/s"});
        double ratio = median_ratio(list[0].speeds[s], list[i].speeds[s], rounds);
        share = ratio < share ? ratio : share;
    }
    snprintf(work, sizeof work, "%d: session against the best", FIRST_SIZE << s);
    tutti__report(json, &(tutti_result){"gemm_libraries", work, share, "share", 0.95, true});
}

/* Everybody's speed at a size, in turns; of the others, who is far behind after the first ones sits
 * out. */
static void play(contender *list, int count, int s, int64_t rounds)
{
    double best = 0;
    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < count; i++) {
            double *speeds = list[i].speeds[s];
            bool behind = i > 0 && r >= TRIAL_TURNS && highest(speeds, TRIAL_TURNS) < best / 2;
            speeds[r] = behind ? speeds[r - 1] : tutti__turns_take(&list[i].turns, s);
            best = r < TRIAL_TURNS && speeds[r] > best ? speeds[r] : best;
        }
}

static int run(int argc, char **argv, bool json)
{
    const char *name;
    int64_t rounds = 21;
    static contender list[MOST_CONTENDERS];
    if (tutti__option(&argc, argv, "--contender", &name))
        return run_contender(name);
    if (!tutti__option_int(&argc, argv, "--rounds", TRIAL_TURNS, MOST_ROUNDS, &rounds) ||
        !tutti__bench_knows_all(argc, argv))
        return TUTTI_EXIT_USAGE;
    int count = list_contenders(list);
    double *speeds = calloc((size_t)(count * SIZES * rounds), sizeof *speeds);
    if (!speeds)
        return tutti__complain("no memory for %lld rounds", (long long)rounds);
    for (int i = 0; i < count; i++) {
        const char *arguments[] = {"tutti",       "bench",      "gemm_libraries",
                                   "--contender", list[i].name, NULL};
        tutti__turns_begin(&list[i].turns, arguments);
        for (int s = 0; s < SIZES; s++)
            list[i].speeds[s] = speeds + (i * SIZES + s) * rounds;
    }
    for (int s = 0; s < SIZES; s++) {
        play(list, count, s, rounds);
        report_size(json, list, count, s, rounds);
    }
    for (int i = 0; i < count; i++)
        tutti__turns_end(&list[i].turns);
    free(speeds);
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_gemm_libraries = {
    .name = "gemm_libraries",
    .summary = "square f32 products against every matrix library here",
    .run = run,
};
