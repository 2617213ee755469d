/* timing.c: how long a piece of work takes all ranks of a group: in rounds, of which the least
 * counts, for as long as there is time. */
#include "comm/cost/timing.h"

#include <math.h>

#include "base/world.h"
#include "comm/comm.h"

/* The part of what is left that one figure may take. */
enum { SHARE = 4 };

/* Bytes from which on a benchmark times calls by themselves, so that a disturbance spoils but one;
 * operations are timed in the same way. */
enum { ONE_BY_ONE = 256 << 10 };

/* Calls in a row of smaller ones, at most where there are many. */
enum { BATCH = 20 };

/* Messages of next to no bytes are timed so often at the least, whatever the first one took. */
enum { SMALL = 8, LEAST_SMALL = 3 };

/* Calls of `each` seconds; a benchmark takes as many short ones as of an operation, since the least
 * of many is less than the least of few. */
static int rounds_of(const tutti_timing *m, size_t bytes, double each)
{
    static const double enough = 0.01; /* seconds */
    enum { MOST = 1000 };
    if (!m->thorough)
        return bytes <= SMALL     ? 200
               : bytes <= 4096    ? 40
               : bytes <= 1 << 16 ? 12
               : bytes <= 1 << 20 ? 4
                                  : 2;
    int least = bytes <= 4096       ? 500
                : bytes <= 1 << 16  ? 100
                : bytes <= 1 << 20  ? 40
                : bytes <= 16 << 20 ? 8
                                    : 3;
    return (int)fmax(fmin(enough / each, MOST), least);
}

tutti_status tutti__timing_rounds(tutti_timing *m, double seconds, int most, int *ret_rounds)
{
    double left = (double)(m->until_ns - tutti__now_ns()) * 1e-9 / SHARE;
    int rounds = left < seconds ? 0 : (int)fmin(left / seconds, most);
    TUTTI_TRY(tutti_comm_broadcast(m->probe.call.comm, &rounds, sizeof rounds, TUTTI_U8, 0, NULL));
    *ret_rounds = rounds;
    return TUTTI_OK;
}

/* Begun by all ranks at the same time; the slowest rank's time. */
static tutti_status time_together(tutti_timing *m, tutti_probe_work *work, size_t bytes, int rounds,
                                  double *least)
{
    tutti_comm *comm = m->probe.call.comm;
    int batches = m->thorough ? 10 : 2; /* meeting takes time too */
    batches = rounds < batches || (m->thorough && bytes >= ONE_BY_ONE) ? rounds : batches;
    int each = rounds / (batches > 0 ? batches : 1);
    for (int batch = 0; batch < batches; batch++) {
        TUTTI_TRY(tutti_comm_barrier(comm, NULL));
        int64_t start = tutti__now_ns();
        for (int i = 0; i < each; i++)
            TUTTI_TRY(tutti__probe_run(&m->probe, work, bytes));
        double took = (double)(tutti__now_ns() - start) * 1e-9 / each;
        TUTTI_TRY(tutti_comm_all_reduce(comm, &took, &took, 1, TUTTI_F64, TUTTI_MAX, NULL));
        *least = fmin(*least, took);
    }
    return TUTTI_OK;
}

/* Small calls that everybody takes part in follow each other; messages one way are apart. Of large
 * ones, of several pairs, the slowest counts: who has all of them to wait for goes on with that. */
static tutti_status time_rounds(tutti_timing *m, tutti_probe_work *work, size_t bytes, int rounds,
                                double *least)
{
    bool alone =
        work == tutti__probe_add || work == tutti__probe_add_into || work == tutti__probe_copy;
    bool apart = work == tutti__probe_one_way || work == tutti__probe_of_two ||
                 work == tutti__probe_folded || work == tutti__probe_folded_into;
    bool one_pair = work == tutti__probe_of_two || m->probe.call.size < 4;
    if (alone || (m->thorough && bytes >= ONE_BY_ONE && !(apart && one_pair)))
        return time_together(m, work, bytes, rounds, least);
    int batches = rounds < 10 || apart ? rounds : rounds < 10 * BATCH ? 10 : rounds / BATCH;
    int each = rounds / (batches > 0 ? batches : 1);
    for (int batch = 0; batch < batches; batch++) {
        int64_t start = tutti__now_ns();
        for (int i = 0; i < each; i++)
            TUTTI_TRY(tutti__probe_run(&m->probe, work, bytes));
        *least = fmin(*least, (double)(tutti__now_ns() - start) * 1e-9 / each);
    }
    return TUTTI_OK;
}

/* Calls whose time does not count; *each is the least of them. */
static tutti_status timing_settle(tutti_timing *m, tutti_probe_work *work, size_t bytes,
                                  double *each)
{
    int rounds;
    if (!m->thorough)
        return TUTTI_OK;
    TUTTI_TRY(tutti__timing_rounds(m, *each, tutti__cost_settling((int64_t)bytes), &rounds));
    return time_rounds(m, work, bytes, rounds, each);
}

tutti_status tutti__timing_once(tutti_timing *m, tutti_probe_work *work, size_t bytes,
                                double expected, double *ret_seconds)
{
    int rounds = 1;
    if (expected > 0)
        TUTTI_TRY(tutti__timing_rounds(m, expected, 1, &rounds));
    if (rounds == 0)
        return TUTTI_OK;
    int64_t begun = tutti__now_ns();
    TUTTI_TRY(tutti__probe_run(&m->probe, work, bytes));
    *ret_seconds = fmax((double)(tutti__now_ns() - begun), 1) * 1e-9; /* above 0 on all ranks */
    return TUTTI_OK;
}

tutti_status tutti__timing_often(tutti_timing *m, tutti_probe_work *work, size_t bytes,
                                 double *least)
{
    int rounds;
    double best = INFINITY;
    if (!(*least > 0))
        return TUTTI_OK;
    TUTTI_TRY(timing_settle(m, work, bytes, least));
    TUTTI_TRY(tutti__timing_rounds(m, *least, rounds_of(m, bytes, *least), &rounds));
    if (bytes <= SMALL && rounds < LEAST_SMALL) /* all else is reckoned from these */
        rounds = LEAST_SMALL;
    if (rounds > 0)
        TUTTI_TRY(time_rounds(m, work, bytes, rounds, &best));
    *least = m->thorough && isfinite(best) ? best : fmin(best, *least);
    return TUTTI_OK;
}
