/* gemm_libraries.c: our square products against the libraries' that this machine has.
 *
 * A library runs under our pool (in the pieces of our plan, and in one piece a thread) and with
 * threads of its own; its best counts. Every contender runs in a process of its own, since threads
 * of libraries spin after their work, and the processes take turns, so that a slow moment of the
 * machine does not fall on one of them alone. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"
#include "cli/bench.h"
#include "device/cpu/gemm/gemm.h"
#include "tables/gemm_engine.h"

enum { SIZES = 4, FIRST_SIZE = 256, MOST_CONTENDERS = 32, LEAST_CALLS = 3 };
#define SIZE_SECONDS 0.25 /* spent on one size */
#define CALL_SECONDS 1.0  /* a product that takes longer is left out */

typedef struct contender {
    char name[48];       /* "session", "plain", "blis", "blis, own threads" */
    double speed[SIZES]; /* GFLOP/s, best of the rounds; 0 when it does not run */
} contender;

typedef struct product {
    tutti_gemm gemm;
    tutti_gemm_plan plan;
    void *workspace;
    tutti_pool *pool;
    void (*multiply)(const tutti_gemm *gemm);
    tutti_session *session;
    tutti_sym a, b, c;
    tutti_tensor *x, *y;
} product;

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

/* GFLOP/s of the fastest call in SIZE_SECONDS; 0 when a call takes longer than CALL_SECONDS. */
static double best_speed(product *p, void (*run)(void *context))
{
    double flops = 2.0 * (double)p->gemm.m * (double)p->gemm.n * (double)p->gemm.k, best = 0;
    double begin = tutti__seconds();
    run(p); /* warm */
    if (tutti__seconds() - begin > CALL_SECONDS)
        return 0;
    begin = tutti__seconds();
    for (int call = 0; call < LEAST_CALLS || tutti__seconds() - begin < SIZE_SECONDS; call++) {
        double start = tutti__seconds();
        run(p);
        double speed = 1e-9 * flops / (tutti__seconds() - start);
        best = speed > best ? speed : best;
    }
    return best;
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

/* In a process of its own, which takes everything with it when it ends: prints a speed a size. */
static int run_contender(const char *name)
{
    char library[48];
    product p = {0};
    const tutti_gemm_engine *engine = NULL;
    snprintf(library, sizeof library, "%.*s", name ? (int)strcspn(name, ",") : 0, name ? name : "");
    bool session = strcmp(name, "session") == 0, plain = strcmp(name, "plain") == 0;
    bool own = strchr(name, ',') != NULL;
    if (!session && !plain && tutti__gemm_engine_load(library, &engine) != TUTTI_OK)
        return tutti__complain("%s", tutti_error_message());
    if (own && !own_threads(engine, tutti__bench_threads(), &p))
        return TUTTI_EXIT_FAILED;
    if (session)
        open_session(&p);
    else if (!own)
        tutti__bench_must(tutti__pool_create(tutti__bench_threads(), -1, &p.pool));
    for (int s = 0; s < SIZES; s++) {
        make_product(&p, FIRST_SIZE << s, engine);
        double speed = best_speed(&p, session ? run_session : own ? run_call : run_plan), other = 0;
        if (engine && !own) {
            p.multiply = engine->multiply;
            other = best_speed(&p, run_by_threads);
        }
        printf("%g\n", other > speed ? other : speed);
    }
    return TUTTI_EXIT_OK;
}

/* Starts this program again for one contender and keeps its best speeds. */
static void measure(contender *c)
{
    char path[PATH_MAX], command[PATH_MAX + 128];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size <= 0)
        return;
    path[size] = 0;
    snprintf(command, sizeof command, "'%s' bench gemm_libraries --contender '%.47s' 2> /dev/null",
             path, c->name);
    FILE *pipe = popen(command, "r");
    char line[64];
    for (int s = 0; pipe && s < SIZES && fgets(line, sizeof line, pipe); s++) {
        double speed = strtod(line, NULL);
        c->speed[s] = speed > c->speed[s] ? speed : c->speed[s];
    }
    if (pipe)
        pclose(pipe);
}

/* The session first; then whoever might be faster. */
static int list_contenders(contender *list)
{
    int count = 2;
    strcpy(list[0].name, "session");
    strcpy(list[1].name, "plain");
    for (const tutti_gemm_engine *const *e = tutti__gemm_engine_table; *e; e++) {
        if (count + 2 > MOST_CONTENDERS)
            break;
        snprintf(list[count++].name, sizeof list->name, "%s", (*e)->name);
        if (strcmp((*e)->name, "cblas") != 0)
            snprintf(list[count++].name, sizeof list->name, "%s, own threads", (*e)->name);
    }
    return count;
}

static void report_size(bool json, const contender *list, int count, int s)
{
    char work[96];
    double best = 0;
    for (int i = 0; i < count; i++) {
        best = list[i].speed[s] > best ? list[i].speed[s] : best;
        if (list[i].speed[s] == 0)
            continue;
        snprintf(work, sizeof work, "%d: %.47s", FIRST_SIZE << s, list[i].name);
        tutti__report(json, &(tutti_result){"gemm_libraries", work, list[i].speed[s], "GFLOP/s"});
    }
    snprintf(work, sizeof work, "%d: session against the best", FIRST_SIZE << s);
    tutti__report(json,
                  &(tutti_result){"gemm_libraries", work, best > 0 ? list[0].speed[s] / best : 0,
                                  "share", 0.95, true});
}

static int run(int argc, char **argv, bool json)
{
    const char *name;
    int64_t rounds = 3;
    contender list[MOST_CONTENDERS] = {0};
    if (tutti__option(&argc, argv, "--contender", &name))
        return run_contender(name);
    if (!tutti__option_int(&argc, argv, "--rounds", 1, 1000, &rounds))
        return TUTTI_EXIT_USAGE;
    int count = list_contenders(list);
    for (int64_t r = 0; r < rounds; r++)
        for (int i = 0; i < count; i++)
            measure(&list[i]);
    for (int s = 0; s < SIZES; s++)
        report_size(json, list, count, s);
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_gemm_libraries = {
    .name = "gemm_libraries",
    .summary = "square f32 products against every matrix library here",
    .run = run,
};
