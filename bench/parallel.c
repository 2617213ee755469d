/* parallel.c: what a synchronous step costs. `null`: one scalar variable and a row for each
 * replica, so that nothing is left but the step itself. `dense`: a chain of dense layers 1024 wide,
 * whose gradients are as many bytes as is asked for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/bench.h"
#include "parallel/strategies/strategy.h"

enum { WIDTH = 1024, ROUNDS = 100, MOST_TURNS = 1000 }; /* short rounds: some are disturbed */

static const char usage[] =
    "usage: tutti run -n 2 tutti bench parallel [OPTIONS]\n"
    "\n"
    "The time of a training step of several replicas: of the workers of the job, or of --devices.\n"
    "\n"
    "  --work null|dense    one scalar variable (the default), or a chain of layers 1024 wide\n"
    "  --mib N              dense: of all variables together; default 100\n"
    "  --rows N             dense: examples of each replica; default 16\n"
    "  --engine shm|tcp     between the workers\n"
    "  --devices LIST       mirrored on these, in this process\n"
    "  --alone              every process for itself: the same work without synchronisation\n"
    "  --seconds N          at most; default 5\n"
    "  --cpu                also the CPU time of a step, of all threads of this process\n"
    "  --turns N            so many steps, each followed by one of every worker for itself: what a\n"
    "                       step takes beyond that one, median (--seconds is not read)\n";

typedef struct settings {
    const char *work, *engine, *devices;
    int64_t mib, rows, seconds, turns;
    bool alone, cpu, json;
} settings;

typedef struct training {
    tutti_strategy *strategy; /* NULL: alone */
    tutti_graph *graph;
    tutti_session *session;
    tutti_sym x, step;
    tutti_sym w;        /* null: the variable */
    tutti_tensor *rows; /* of this process */
    int64_t batch;      /* of all of them */
    int64_t steps;      /* taken */
    double cpu;         /* seconds of all threads in a step, on average */
} training;

/* x [batch]; loss mean(w x); w -= its gradient */
static void build_null(training *t)
{
    t->x = tutti_split_batch(tutti_placeholder(t->graph, TUTTI_F32, TUTTI_ANY));
    t->w = tutti_variable(t->graph, tutti_full(1), .name = "w");
    tutti_grad gradient;
    tutti_gradients(tutti_mean(tutti_mul(t->w, t->x)), 1, &t->w, &gradient);
    t->step = tutti_assign_sub(t->w, gradient.value);
}

/* x [batch, 1024]; layer by layer relu(x W); loss mean of squares; sgd */
static void build_dense(training *t, int64_t layers)
{
    t->x = tutti_split_batch(tutti_placeholder(t->graph, TUTTI_F32, TUTTI_ANY, WIDTH));
    tutti_sym h = t->x;
    for (int64_t i = 0; i < layers; i++) {
        tutti_sym w = tutti_variable(t->graph, tutti_glorot_uniform(WIDTH, WIDTH));
        h = tutti_relu(tutti_matmul(h, w));
    }
    t->step = tutti_minimize(tutti_sgd(1e-3), tutti_mean(tutti_square(h)));
}

static tutti_strategy *strategy_of(const settings *given)
{
    if (given->alone)
        return NULL;
    if (given->devices)
        return tutti_strategy_mirrored(.devices = given->devices);
    return tutti_strategy_multi_worker_mirrored(.engine = given->engine);
}

/* The rows that the replicas of this process have: from *ret_first on. */
static int64_t own_rows(const training *t, int64_t *ret_first)
{
    *ret_first = 0;
    if (!t->strategy)
        return t->batch;
    int64_t sum = 0, first, rows;
    int local = tutti_strategy_local(t->strategy), rank = tutti_strategy_rank(t->strategy);
    for (int i = 0; i < local; i++) {
        tutti_strategy_rows(t->strategy, t->batch, rank * local + i, &first, &rows);
        if (i == 0)
            *ret_first = first;
        sum += rows;
    }
    return sum;
}

static tutti_tensor *make_rows(const training *t, bool dense)
{
    int64_t first, rows = own_rows(t, &first);
    tutti_tensor *x = tutti__bench_tensor(TUTTI_F32, dense ? 2 : 1, (int64_t[]){rows, WIDTH},
                                          1 + (uint64_t)first);
    if (!dense)
        for (int64_t i = 0; i < rows; i++)
            tutti_tensor_set(x, i, (double)(first + i + 1));
    return x;
}

/* Row i of B is i + 1, so that a step takes (B + 1) / 2 from w, which no replica's rows alone say.
 */
static void check_null(training *t)
{
    tutti_tensor *w;
    tutti__bench_must(tutti_session_get(t->session, t->w, &w));
    double expected = 1 - (double)t->steps * (double)(t->batch + 1) / 2;
    double found = tutti_tensor_get(w, 0);
    tutti_tensor_release(w);
    if (found == expected)
        return;
    tutti__complain("after %lld steps the variable is %g, not %g: replicas were not synchronised",
                    (long long)t->steps, found, expected);
    exit(TUTTI_EXIT_FAILED);
}

static void open_training(const settings *given, training *ret)
{
    bool dense = strcmp(given->work, "dense") == 0;
    training t = {.strategy = strategy_of(given)};
    if (t.strategy)
        tutti__bench_must(tutti_strategy_check(t.strategy));
    t.batch = (dense ? given->rows : 1) * (t.strategy ? tutti_strategy_replicas(t.strategy) : 1);
    t.rows = make_rows(&t, dense);
    tutti__bench_must(tutti_graph_create(&t.graph));
    if (dense)
        build_dense(&t, (given->mib << 20) / (WIDTH * WIDTH * (int64_t)sizeof(float)));
    else
        build_null(&t);
    tutti__bench_must(tutti_graph_check(t.graph));
    tutti__bench_must(tutti_session_open(&t.session, t.graph, .strategy = t.strategy));
    tutti__bench_must(tutti_run(t.session, .target = tutti_initialize_variables(t.graph)));
    *ret = t;
}

static void close_training(training *t)
{
    tutti_session_close(t->session);
    tutti_graph_destroy(t->graph);
    tutti_tensor_release(t->rows);
    tutti__bench_must(tutti_strategy_close(t->strategy));
}

static void step(void *context)
{
    training *t = context;
    t->steps++;
    tutti__bench_must(tutti_run(t->session, .feed = TUTTI_FEED({t->x, t->rows}), .target = t->step,
                                .batch = t->strategy ? t->batch : 0));
}

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* All processes have to take the same number of steps, whatever their clocks say. */
static double seconds_of_step(const settings *given, training *t)
{
    bool dense = strcmp(given->work, "dense") == 0;
    for (int i = 0; i < 2; i++)
        step(t);
    int steps = dense ? 1 : (int)(given->seconds * 20000 / ROUNDS);
    int64_t before = t->steps;
    double cpu = cpu_seconds();
    double best = tutti__best_seconds(dense ? (int)(given->seconds * 4) : ROUNDS, steps, step, t);
    t->cpu = (cpu_seconds() - cpu) / (double)(t->steps - before);
    return best;
}

/* ---- in turns ---- */

/* Wall time and CPU time of one step, for which all workers are ready. */
static void time_step(training *t, tutti_comm *world, double ret_seconds[2])
{
    if (world)
        tutti__bench_must(tutti_comm_barrier(world, NULL));
    double start = tutti__seconds(), cpu = cpu_seconds();
    step(t);
    ret_seconds[0] = tutti__seconds() - start;
    ret_seconds[1] = cpu_seconds() - cpu;
}

static void report_middle(const settings *given, const char *what, const double *seconds)
{
    char work[160];
    snprintf(work, sizeof work, "%s, %lld MiB, %lld rows each: %s", given->work,
             (long long)given->mib, (long long)given->rows, what);
    tutti__report(
        given->json,
        &(tutti_result){.bench = "parallel",
                        .work = work,
                        .value = 1e6 * seconds[tutti__bench_middle(seconds, given->turns)],
                        .unit = "us"});
}

/* A machine that is slower for a while is so for both steps of a turn. */
static int bench_in_turns(const settings *given)
{
    double own[MOST_TURNS], all[MOST_TURNS], beyond[2][MOST_TURNS];
    settings apart = *given;
    training together, alone;
    apart.alone = true;
    open_training(given, &together);
    open_training(&apart, &alone);
    tutti_comm *world = together.strategy->axis_group->world;
    for (int64_t turn = -1; turn < given->turns; turn++) {
        double a[2], b[2];
        time_step(&together, world, a);
        time_step(&alone, world, b);
        if (turn < 0)
            continue; /* it compiles */
        all[turn] = a[0];
        own[turn] = b[0];
        for (int i = 0; i < 2; i++)
            beyond[i][turn] = a[i] - b[i];
    }
    if (tutti_strategy_rank(together.strategy) == 0) {
        report_middle(given, "step", all);
        report_middle(given, "alone", own);
        report_middle(given, "beyond alone", beyond[0]);
        report_middle(given, "CPU time beyond alone", beyond[1]);
    }
    close_training(&alone);
    close_training(&together);
    return TUTTI_EXIT_OK;
}

static int bench(const settings *given)
{
    training t;
    char work[160];
    open_training(given, &t);
    double us = seconds_of_step(given, &t) * 1e6;
    bool null = strcmp(given->work, "null") == 0;
    if (null)
        check_null(&t);
    const char *over = given->devices ? given->devices : given->engine ? given->engine : "default";
    int replicas = t.strategy ? tutti_strategy_replicas(t.strategy) : 1;
    if (null)
        snprintf(work, sizeof work, "null step, %d replicas, %s", replicas,
                 t.strategy ? over : "alone");
    else
        snprintf(work, sizeof work, "%lld MiB dense, %lld rows each, %d replicas, %s",
                 (long long)given->mib, (long long)given->rows, replicas,
                 t.strategy ? over : "alone");
    char threads[200];
    snprintf(threads, sizeof threads, "%s: CPU time", work);
    bool first = !t.strategy || tutti_strategy_rank(t.strategy) == 0;
    if (given->cpu && first)
        tutti__report(given->json, &(tutti_result){.bench = "parallel",
                                                   .work = threads,
                                                   .value = t.cpu * 1e6,
                                                   .unit = "us"});
    double limit = !null || replicas != 2 ? 0 : strcmp(over, "shm") == 0 ? 20 : 100;
    if (first)
        tutti__report(given->json, &(tutti_result){.bench = "parallel",
                                                   .work = work,
                                                   .value = us,
                                                   .unit = "us",
                                                   .limit = given->devices ? 0 : limit});
    close_training(&t);
    return TUTTI_EXIT_OK;
}

static int run(int argc, char **argv, bool json)
{
    settings given = {.work = "null", .mib = 100, .rows = 16, .seconds = 5, .json = json};
    (void)tutti__option(&argc, argv, "--work", &given.work);
    (void)tutti__option(&argc, argv, "--engine", &given.engine);
    (void)tutti__option(&argc, argv, "--devices", &given.devices);
    given.alone = tutti__flag(&argc, argv, "--alone");
    given.cpu = tutti__flag(&argc, argv, "--cpu");
    if (!tutti__option_int(&argc, argv, "--mib", 4, 4096, &given.mib) ||
        !tutti__option_int(&argc, argv, "--rows", 1, 4096, &given.rows) ||
        !tutti__option_int(&argc, argv, "--turns", 1, MOST_TURNS, &given.turns) ||
        !tutti__option_int(&argc, argv, "--seconds", 1, 600, &given.seconds))
        return TUTTI_EXIT_USAGE;
    bool known = strcmp(given.work, "null") == 0 || strcmp(given.work, "dense") == 0;
    if (argc > 1 || !known)
        return tutti__complain("parallel: unknown %s; see tutti bench parallel --help",
                               argc > 1 ? argv[1] : given.work),
               TUTTI_EXIT_USAGE;
    bool dense = strcmp(given.work, "dense") == 0;
    if (given.turns > 0 && (given.alone || given.devices || given.cpu || !dense))
        return tutti__complain("parallel: --turns is for the workers of a job and --work dense, "
                               "and tells CPU time by itself"),
               TUTTI_EXIT_USAGE;
    return given.turns > 0 ? bench_in_turns(&given) : bench(&given);
}

const tutti_bench tutti_bench_parallel = {
    .name = "parallel",
    .summary = "a synchronous training step of several replicas",
    .usage = usage,
    .run = run,
};
