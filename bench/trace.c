/* trace.c: what the trace costs a training step of the lecture's network.
 *
 * Counted: events of a step times the nanoseconds of one event, against the step. Measured: two
 * threads take turns on one session; the ring of the second was off when the thread first asked for
 * it. The difference is near zero, so noise is larger; the limit is on what is counted. */
#include <pthread.h>
#include <stdlib.h>

#include "base/params.h"
#include "bench/lecture.h"
#include "program/trace.h"

enum { ROUNDS = 40, STEPS = 5, EVENTS = 1000000 };

/* `turn` says whose block of steps is next: 0 traced, 1 untraced. */
typedef struct contest {
    tutti_lecture_session lecture;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int turn;
    double seconds[2][ROUNDS]; /* of one step */
    uint64_t events;           /* of one traced step */
} contest;

typedef struct side {
    contest *contest;
    int number;
} side;

static void run_block(contest *c, int number, int round)
{
    tutti__lecture_step(&c->lecture); /* brings this core's caches back */
    double start = tutti__seconds();
    for (int i = 0; i < STEPS; i++)
        tutti__lecture_step(&c->lecture);
    c->seconds[number][round] = (tutti__seconds() - start) / STEPS;
}

static void *run_side(void *context)
{
    side *s = context;
    contest *c = s->contest;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&c->lock);
        while (c->turn != s->number)
            pthread_cond_wait(&c->changed, &c->lock);
        if (round == 0) /* the thread's ring is made, or not, in its first step */
            tutti__bench_must(tutti__param_set("TRACE_RING", s->number == 0 ? "1" : "0"));
        run_block(c, s->number, round);
        tutti_trace *trace = tutti__trace_mine();
        if (trace)
            c->events = trace->count / ((uint64_t)(round + 1) * (STEPS + 1));
        c->turn = 1 - s->number;
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

static double least(const double *list)
{
    double best = list[0];
    for (int i = 1; i < ROUNDS; i++)
        best = list[i] < best ? list[i] : best;
    return best;
}

/* Nanoseconds of one event: reading the clock and writing the ring, as the runner does. */
static double event_ns(void)
{
    tutti_trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return 0;
    double best = 1e9;
    for (int repeat = 0; repeat < 5; repeat++) {
        double begin = tutti__seconds();
        uint64_t start = tutti__ticks();
        for (int i = 0; i < EVENTS; i++) {
            uint64_t end = tutti__ticks();
            tutti__trace_add(trace, 1, 2, start, end);
            start = end;
        }
        double each = (tutti__seconds() - begin) / EVENTS * 1e9;
        best = each < best ? each : best;
    }
    free(trace);
    return best;
}

static int run(int argc, char **argv, bool json)
{
    if (!tutti__bench_knows_all(argc, argv))
        return TUTTI_EXIT_USAGE;
    contest *c = calloc(1, sizeof *c);
    if (!c)
        return tutti__complain("no memory");
    pthread_t threads[2];
    side sides[2] = {{c, 0}, {c, 1}};
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    tutti__lecture_open(64, NULL, &c->lecture);
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, run_side, &sides[i]) != 0)
            return tutti__complain("no thread");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    tutti__bench_must(tutti__param_set("TRACE_RING", NULL));
    double each = event_ns(), traced = least(c->seconds[0]), untraced = least(c->seconds[1]);
    tutti__report(
        json, &(tutti_result){"trace", "events of a lecture step", (double)c->events, "events"});
    tutti__report(json, &(tutti_result){"trace", "one event", each, "ns"});
    tutti__report(json, &(tutti_result){"trace", "trace of a lecture step, counted",
                                        100 * (double)c->events * each * 1e-9 / untraced, "%", 1});
    tutti__report(json, &(tutti_result){"trace", "traced against untraced step, measured",
                                        traced / untraced, "x"});
    tutti__lecture_close(&c->lecture);
    free(c);
    return TUTTI_EXIT_OK;
}

const tutti_bench tutti_bench_trace = {
    .name = "trace",
    .summary = "what the trace costs a training step of the lecture's network",
    .run = run,
};
