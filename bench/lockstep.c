/* lockstep.c: what synchronisation costs: training steps of the workers of a job beside the same
 * steps of each worker for itself, in short turns, so that slow moments of the machine fall on both
 * alike. Workers that wait for each other are as slow as the slowest in every single step, whatever
 * the exchange costs: that much follows from the times of the steps that nobody waited for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/status.h"
#include "bench/lecture.h"

enum { STEPS = 16, BATCH = 64 }; /* of a turn, after one to begin with; of each worker */

static const char usage[] =
    "usage: tutti run -n 2 tutti bench lockstep [OPTIONS]\n"
    "\n"
    "The lecture's network, 64 examples a worker: synchronised against each for itself, in turns.\n"
    "Pin each worker to a core of its own.\n"
    "\n"
    "  --engine shm|tcp   between the workers\n"
    "  --threads N        of a worker; default 1\n"
    "  --turns N          of each kind; default 100\n";

typedef struct times {
    int64_t turns;
    double *apart, *together; /* [turns * STEPS], seconds of this worker's steps */
} times;

static double *numbers(int64_t count)
{
    double *memory = calloc((size_t)count, sizeof *memory);
    if (!memory)
        tutti__bench_must(
            tutti_fail(TUTTI_NO_MEMORY, "no memory for %lld times", (long long)count));
    return memory;
}

static void take_turn(tutti_lecture_session *lecture, double *ret_seconds)
{
    tutti__lecture_step(lecture);
    for (int i = 0; i < STEPS; i++) {
        double start = tutti__seconds();
        tutti__lecture_step(lecture);
        ret_seconds[i] = tutti__seconds() - start;
    }
}

/* All workers' seconds of the steps that they took apart, one worker behind the other. */
typedef struct gathering {
    const times *own;
    double *all; /* [workers * turns * STEPS] */
} gathering;

static tutti_status gather(const tutti_replica *replica, void *context)
{
    gathering *g = context;
    tutti_tensor *mine, *joined;
    int64_t count = g->own->turns * STEPS;
    TUTTI_TRY(tutti_tensor_from(TUTTI_F64, 1, &count, g->own->apart, &mine));
    tutti_status status = tutti_replica_gather(replica, mine, &joined);
    tutti_tensor_release(mine);
    if (status != TUTTI_OK)
        return status;
    for (int64_t i = 0; i < count * replica->count; i++)
        g->all[i] = tutti_tensor_get(joined, i);
    tutti_tensor_release(joined);
    return TUTTI_OK;
}

/* Of one turn: the sum of the workers' speeds apart, in steps a second, and that of workers which
 * wait for the slowest one after every step. */
static void speeds_of(const double *all, int workers, int64_t stride, double *ret_apart,
                      double *ret_waiting)
{
    double slowest = 0, apart = 0;
    for (int r = 0; r < workers; r++) {
        double own = 0;
        for (int i = 0; i < STEPS; i++)
            own += all[r * stride + i];
        apart += STEPS / own;
    }
    for (int i = 0; i < STEPS; i++) {
        double most = 0;
        for (int r = 0; r < workers; r++)
            most = all[r * stride + i] > most ? all[r * stride + i] : most;
        slowest += most;
    }
    *ret_apart = apart;
    *ret_waiting = STEPS * workers / slowest;
}

static void report(const times *t, const double *all, int workers, const char *engine, bool json)
{
    enum { APART, TOGETHER, RATIO, WAITING, KINDS };
    double *figures[KINDS];
    char work[120];
    for (int k = 0; k < KINDS; k++)
        figures[k] = numbers(t->turns);
    for (int64_t turn = 0; turn < t->turns; turn++) {
        double apart, waiting, together = 0;
        speeds_of(all + turn * STEPS, workers, t->turns * STEPS, &apart, &waiting);
        for (int i = 0; i < STEPS; i++)
            together += t->together[turn * STEPS + i];
        figures[APART][turn] = 1e6 * workers / apart;
        figures[TOGETHER][turn] = 1e6 * together / STEPS;
        figures[RATIO][turn] = STEPS * workers / together / apart;
        figures[WAITING][turn] = waiting / apart;
    }
    const struct {
        const char *what, *unit;
        double limit;
    } lines[KINDS] = {
        [APART] = {"step of workers apart", "us", 0},
        [TOGETHER] = {"step", "us", 0},
        [RATIO] = {"speed against workers apart", "x", strcmp(engine, "tcp") == 0 ? 0.9 : 0.95},
        [WAITING] = {"the same if only waiting cost time", "x", 0}};
    for (int k = 0; k < KINDS; k++) {
        snprintf(work, sizeof work, "mnist, %d workers, %s: %s", workers, engine, lines[k].what);
        tutti__report(
            json, &(tutti_result){.bench = "lockstep",
                                  .work = work,
                                  .value = figures[k][tutti__bench_middle(figures[k], t->turns)],
                                  .unit = lines[k].unit,
                                  .limit = lines[k].limit,
                                  .higher = true});
        free(figures[k]);
    }
}

static void measure(tutti_strategy *strategy, times *t)
{
    tutti_lecture_session alone, together;
    tutti__lecture_open(BATCH, NULL, &alone);
    tutti__lecture_open(BATCH, strategy, &together);
    for (int64_t turn = 0; turn < t->turns; turn++) {
        take_turn(&together, t->together + turn * STEPS);
        take_turn(&alone, t->apart + turn * STEPS);
    }
    tutti__lecture_close(&alone);
    tutti__lecture_close(&together);
}

static int run(int argc, char **argv, bool json)
{
    times t = {.turns = 100};
    const char *engine = NULL, *threads = "1";
    (void)tutti__option(&argc, argv, "--engine", &engine);
    (void)tutti__option(&argc, argv, "--threads", &threads);
    if (!tutti__option_int(&argc, argv, "--turns", 1, 10000, &t.turns))
        return TUTTI_EXIT_USAGE;
    if (argc > 1)
        return tutti__complain("lockstep: unknown %s; see tutti bench lockstep --help", argv[1]),
               TUTTI_EXIT_USAGE;
    tutti__bench_must(tutti__param_set("THREADS", threads));
    tutti_strategy *strategy = tutti_strategy_multi_worker_mirrored(.engine = engine);
    tutti__bench_must(tutti_strategy_check(strategy));
    int workers = tutti_strategy_workers(strategy);
    t.apart = numbers(t.turns * STEPS);
    t.together = numbers(t.turns * STEPS);
    gathering g = {&t, numbers(t.turns * STEPS * workers)};
    measure(strategy, &t);
    tutti__bench_must(tutti_replica_run(strategy, gather, &g));
    if (workers == 1)
        fprintf(stderr,
                "lockstep: one worker waits for nobody; tutti run -n 2 tutti bench lockstep\n");
    else if (tutti_strategy_rank(strategy) == 0)
        report(&t, g.all, workers, engine ? engine : "shm", json);
    free(t.apart);
    free(t.together);
    free(g.all);
    tutti__bench_must(tutti_strategy_close(strategy));
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_lockstep = {
    .name = "lockstep",
    .summary = "what synchronisation costs: workers of a job beside workers apart, in turns",
    .usage = usage,
    .run = run,
};
