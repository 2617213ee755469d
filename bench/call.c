/* call.c: one call of a collective operation, again and again, and its time. */
#include "bench/call.h"

#include <math.h>
#include <string.h>

#include "base/pause.h"
#include "bench/ranks.h"
#include "bench/socket.h"
#include "cli/bench.h"
#include "comm/comm.h"

static bool is_one_of(const char *operation, const char *const *names)
{
    while (*names && strcmp(operation, *names) != 0)
        names++;
    return *names != NULL;
}

bool tutti__bench_in_blocks(const char *operation)
{
    static const char *const names[] = {"reduce_scatter", "all_gather", "gather",
                                        "scatter",        "all_to_all", NULL};
    return is_one_of(operation, names);
}

bool tutti__bench_is_other(const char *operation)
{
    return is_one_of(operation, (const char *const[]){"copy", "socket", "async", NULL});
}

double tutti__bench_bus_bytes(const tutti_bench_call *s)
{
    double ranks = tutti_comm_size(s->comm), share = (ranks - 1) / ranks;
    if (strcmp(s->operation, "all_reduce") == 0)
        return 2 * share * (double)s->bytes;
    return (tutti__bench_in_blocks(s->operation) ? share : 1) * (double)s->bytes;
}

static tutti_status call_once(const tutti_bench_call *s)
{
    const tutti_comm_call *call = TUTTI_CALL(.algorithm = s->algorithm);
    const char *op = s->operation;
    tutti_comm *comm = s->comm;
    int64_t n = s->count;
    if (strcmp(op, "all_reduce") == 0)
        return tutti_comm_all_reduce(comm, s->a, s->a, n, TUTTI_F32, TUTTI_SUM, call);
    if (strcmp(op, "broadcast") == 0)
        return tutti_comm_broadcast(comm, s->a, n, TUTTI_F32, 0, call);
    if (strcmp(op, "reduce") == 0)
        return tutti_comm_reduce(comm, s->a, s->b, n, TUTTI_F32, TUTTI_SUM, 0, call);
    if (strcmp(op, "reduce_scatter") == 0)
        return tutti_comm_reduce_scatter(comm, s->a, s->b, n, TUTTI_F32, TUTTI_SUM, call);
    if (strcmp(op, "all_gather") == 0)
        return tutti_comm_all_gather(comm, s->a, s->b, n, TUTTI_F32, call);
    if (strcmp(op, "gather") == 0)
        return tutti_comm_gather(comm, s->a, s->b, n, TUTTI_F32, 0, call);
    if (strcmp(op, "scatter") == 0)
        return tutti_comm_scatter(comm, s->a, s->b, n, TUTTI_F32, 0, call);
    if (strcmp(op, "all_to_all") == 0)
        return tutti_comm_all_to_all(comm, s->a, s->b, n, TUTTI_F32, call);
    if (strcmp(op, "copy") == 0) {
        memcpy(s->b, s->a, (size_t)n * 4);
        return tutti_comm_barrier(comm, NULL);
    }
    if (strcmp(op, "socket") == 0)
        return tutti__bench_round_trip(comm, s->socket, s->b, (size_t)n * 4);
    if (strcmp(op, "async") == 0) {
        tutti_request *request;
        TUTTI_TRY(tutti_comm_all_reduce(comm, s->a, s->a, n, TUTTI_F32, TUTTI_SUM,
                                        TUTTI_CALL(.request = &request)));
        return tutti_comm_wait(request);
    }
    return tutti_comm_barrier(comm, call);
}

/* Operations after which the root, or the others, may be ahead: calls in a row would overlap. */
static bool one_way(const char *operation)
{
    static const char *const names[] = {"broadcast", "reduce", "gather", "scatter", NULL};
    return is_one_of(operation, names);
}

/* The three fastest rounds, which say whether the first can be believed. */
enum { FASTEST = 3 };

static void keep_fastest(double *fastest, double each)
{
    for (int i = 0; i < FASTEST; i++)
        if (each < fastest[i]) {
            double slower = fastest[i];
            fastest[i] = each;
            each = slower;
        }
}

/* At a time that rank 0 says, where there is one clock. Ranks leave a barrier of messages one after
 * the other, which is no part of the operation that follows. */
static tutti_status start_together(const tutti_bench_call *s)
{
    static const double soon = 20e-6;
    double start = tutti__seconds() + soon;
    if (s->comm->hosts > 1 || s->comm->area || s->comm->fabric->crowded || !one_way(s->operation))
        return TUTTI_OK;
    TUTTI_TRY(tutti_comm_broadcast(s->comm, &start, sizeof start, TUTTI_U8, 0, NULL));
    while (tutti__seconds() < start)
        tutti__pause();
    return TUTTI_OK;
}

/* Seconds of `times` calls, from the first rank's start to the last one's end. */
static tutti_status time_round(const tutti_bench_call *s, int times, double *ret_seconds)
{
    TUTTI_TRY(tutti_comm_barrier(s->comm, NULL));
    TUTTI_TRY(start_together(s));
    double start = tutti__seconds();
    for (int i = 0; i < times; i++)
        TUTTI_TRY(call_once(s));
    return tutti__bench_span(s->comm, start, tutti__seconds(), ret_seconds);
}

/* Until the caches have settled, or it takes too long, as where ranks wait for a CPU. */
static tutti_status settle(const tutti_bench_call *s)
{
    static const double too_long = 0.25; /* seconds */
    double first;
    TUTTI_TRY(time_round(s, 1, &first));
    for (double left = fmin(tutti__cost_settling(s->bytes), too_long / first); left >= 1; left--)
        TUTTI_TRY(call_once(s));
    return TUTTI_OK;
}

/* What all ranks know alike decides how many rounds there are. */
tutti_status tutti__bench_time_call(const tutti_bench_call *s, double *ret_seconds)
{
    static const double enough = 0.05, too_long = 0.5; /* seconds */
    int times = s->bytes >= 1 << 18 || one_way(s->operation) ? 1 : s->bytes >= 1 << 14 ? 20 : 100;
    int least = s->bytes >= 16 << 20 ? FASTEST : 20, most = 1000;
    double fastest[FASTEST] = {INFINITY, INFINITY, INFINITY}, spent = 0;
    TUTTI_TRY(settle(s));
    for (int round = 0; round < most && (round < least || spent < enough); round++) {
        double took;
        TUTTI_TRY(time_round(s, times, &took));
        spent += took;
        keep_fastest(fastest, took / times);
        bool agree = fastest[FASTEST - 1] < 1.02 * fastest[0];
        if ((round >= least && agree) || (round >= FASTEST && spent > too_long))
            break;
    }
    *ret_seconds = fastest[0];
    return TUTTI_OK;
}
