/* measure.c: the constants of the cost model, measured among the ranks that will use them.
 *
 * One way: even ranks send to the next, all at once, since pairs of an algorithm share the machine
 * too; the odd one answers with 8 bytes, whose time does not count. (Two large messages to and fro
 * are no measure: each rank would have two buffers in its caches, and an operation has one.)
 * Exchange: all ranks give to the next and take from the one before, as a ring does. Additions and
 * copies: all ranks begin at once, since they share memory, and the slowest counts, since an
 * operation ends with the last; a rank's own least would be a moment in which others paused. Of
 * several rounds the least counts, and in a benchmark of several measurements the lower quartile;
 * rank 0's figures are everybody's. When the time for it runs out, on a machine that others use
 * too, there are fewer rounds, and large sizes are not measured but taken to cost per byte what the
 * next smaller ones do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "comm/comm.h"
#include "comm/probe.h"

static const size_t sizes[TUTTI_COMM_SIZES] = {1 << 12, 1 << 15, 1 << 16, 1 << 18, 1 << 19,
                                               1 << 20, 1 << 22, 1 << 24, 1 << 25, 1 << 26};

static const double start_up = 0.2; /* seconds */
enum { START_UP_MOST = 16 << 20 };  /* bytes */
/* The part of what is left that one figure may take. */
enum { SHARE = 4 };

/* Bytes from which on a benchmark times calls by themselves, so that a disturbance spoils but one;
 * operations are timed in the same way. */
enum { ONE_BY_ONE = 256 << 10 };

typedef struct bench {
    tutti_probe probe;
    int levels; /* sizes that are measured; the last stands for larger ones */
    bool thorough;
    tutti_cost_times *times;
    int64_t until_ns; /* when to be done; rank 0's clock */
} bench;

static int levels_for(int64_t most)
{
    int levels = 1;
    while (levels < TUTTI_COMM_SIZES && most > (int64_t)sizes[levels - 1])
        levels++;
    return levels;
}

int64_t tutti__cost_room(int64_t most)
{
    return (int64_t)sizes[levels_for(most) - 1];
}

static int rounds_of(const bench *m, size_t bytes)
{
    if (bytes <= 4096)
        return m->thorough ? 1000 : 40;
    if (bytes <= 1 << 16)
        return m->thorough ? 200 : 12;
    if (bytes <= 1 << 20)
        return m->thorough ? 80 : 4;
    return m->thorough ? (bytes <= 16 << 20 ? 16 : 4) : 2;
}

/* Rank 0's word: how many rounds of `seconds` each there is time for, at most `most`. */
static tutti_status agree_on_rounds(bench *m, double seconds, int most, int *ret_rounds)
{
    double left = (double)(m->until_ns - tutti__now_ns()) * 1e-9 / SHARE;
    int rounds = left < seconds ? 0 : (int)fmin(left / seconds, most);
    TUTTI_TRY(tutti_comm_broadcast(m->probe.call.comm, &rounds, sizeof rounds, TUTTI_U8, 0, NULL));
    *ret_rounds = rounds;
    return TUTTI_OK;
}

/* Begun by all ranks at the same time; the slowest rank's time. */
static tutti_status time_together(bench *m, tutti_probe_work *work, size_t bytes, int rounds,
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
            TUTTI_TRY(work(&m->probe, bytes));
        double took = (double)(tutti__now_ns() - start) * 1e-9 / each;
        TUTTI_TRY(tutti_comm_all_reduce(comm, &took, &took, 1, TUTTI_F64, TUTTI_MAX, NULL));
        *least = fmin(*least, took);
    }
    return TUTTI_OK;
}

/* Small calls that everybody takes part in follow each other; messages one way are apart. */
static tutti_status time_rounds(bench *m, tutti_probe_work *work, size_t bytes, int rounds,
                                double *least)
{
    bool alone =
        work == tutti__probe_add || work == tutti__probe_add_into || work == tutti__probe_copy;
    bool apart = work == tutti__probe_one_way || work == tutti__probe_folded;
    if (alone || (m->thorough && bytes >= ONE_BY_ONE && !apart))
        return time_together(m, work, bytes, rounds, least);
    int batches = rounds < 10 || apart ? rounds : 10;
    int each = rounds / (batches > 0 ? batches : 1);
    for (int batch = 0; batch < batches; batch++) {
        int64_t start = tutti__now_ns();
        for (int i = 0; i < each; i++)
            TUTTI_TRY(work(&m->probe, bytes));
        *least = fmin(*least, (double)(tutti__now_ns() - start) * 1e-9 / each);
    }
    return TUTTI_OK;
}

/* Calls whose time does not count; *each is the least of them. */
static tutti_status settle(bench *m, tutti_probe_work *work, size_t bytes, double *each)
{
    int rounds;
    if (!m->thorough)
        return TUTTI_OK;
    TUTTI_TRY(agree_on_rounds(m, *each, tutti__cost_settling((int64_t)bytes), &rounds));
    return time_rounds(m, work, bytes, rounds, each);
}

/* The best of several batches, as a program that calls often sees it; *least is what was seen
 * before, or 0. `expected` seconds of one call, 0 when nobody knows; then it is measured at any
 * price. Without time for it *least stays. */
static tutti_status time_of(bench *m, tutti_probe_work *work, size_t bytes, double expected,
                            double *least)
{
    int rounds = 1;
    if (expected > 0)
        TUTTI_TRY(agree_on_rounds(m, expected, 1, &rounds));
    if (rounds == 0)
        return TUTTI_OK;
    int64_t begun = tutti__now_ns();
    TUTTI_TRY(work(&m->probe, bytes));
    double each = (double)(tutti__now_ns() - begun) * 1e-9;
    TUTTI_TRY(settle(m, work, bytes, &each));
    double best = INFINITY;
    TUTTI_TRY(agree_on_rounds(m, each, rounds_of(m, bytes), &rounds));
    if (rounds > 0)
        TUTTI_TRY(time_rounds(m, work, bytes, rounds, &best));
    *least = m->thorough && isfinite(best) ? best : fmin(best, each);
    return TUTTI_OK;
}

static tutti_status curve(bench *m, tutti_probe_work *work, double *times)
{
    double expected = 0;
    for (int i = 0; i < m->levels; i++) {
        if (i > 0)
            expected *= (double)sizes[i] / (double)sizes[i - 1];
        TUTTI_TRY(time_of(m, work, sizes[i], expected, &times[i]));
        expected = times[i] > 0 ? times[i] : expected;
    }
    return TUTTI_OK;
}

/* Seconds a byte at each size, after `base` for none at all. */
static void per_byte(const double *times, double base, double *ret)
{
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        ret[i] = times[i] > 0 ? fmax(times[i] - base, 0.1 * times[i]) / (double)sizes[i]
                              : ret[i > 0 ? i - 1 : 0];
}

/* Within a machine nothing is so slow: somebody else was at work, and the guess is nearer. */
static void doubt(double *measured, double guess)
{
    enum { TIMES = 50 };
    if (*measured > TIMES * guess)
        *measured = guess;
}

static void doubt_link(const tutti_comm *group, tutti_comm_cost *cost)
{
    tutti_comm_cost guess = tutti__cost_guess(group);
    enum { LINK = TUTTI_LINK_WITHIN };
    doubt(&cost->link[LINK].alpha, guess.link[LINK].alpha);
    doubt(&cost->link[LINK].turn, guess.link[LINK].alpha);
    for (int i = 0; i < TUTTI_COMM_SIZES; i++) {
        doubt(&cost->link[LINK].beta[i], guess.link[LINK].beta[i]);
        doubt(&cost->link[LINK].exchange[i], guess.link[LINK].exchange[i]);
    }
}

/* Sender and receiver by themselves, as far as the link holds a message; the smallest at any price.
 */
static tutti_status measure_ends(bench *m, tutti_comm_link link, double hold)
{
    for (int i = 0; i < m->levels && (double)sizes[i] <= hold; i++) {
        double *put = &m->times->put[link][i], *taken = &m->times->taken[link][i];
        double each = m->times->one_way[link][i];
        int rounds;
        m->probe.pause = 2 * each;
        TUTTI_TRY(agree_on_rounds(m, 3 * each, m->thorough ? 50 : 4, &rounds));
        rounds = i == 0 && rounds < 1 ? 1 : rounds;
        for (int round = 0; round < rounds; round++) {
            TUTTI_TRY(tutti__probe_late(&m->probe, sizes[i]));
            if (round == 0 && rounds > 1)
                continue; /* for the caches */
            *put = *put > 0 ? fmin(*put, m->probe.put) : m->probe.put;
            *taken = *taken > 0 ? fmin(*taken, m->probe.taken) : m->probe.taken;
        }
    }
    return TUTTI_OK;
}

static tutti_status measure_link(tutti_comm *group, bench *m, tutti_comm_link link)
{
    double *one = m->times->one_way[link], *both = m->times->exchange[link];
    m->probe.call.comm = group;
    m->probe.call.rank = group->rank;
    m->probe.call.size = group->size;
    m->probe.call.tag = (uint32_t)(UINT32_C(0x80000000) | (++group->sequence & 0x7fffffff));
    TUTTI_TRY(time_of(m, tutti__probe_one_way, 8, 0, &one[TUTTI_COMM_SIZES]));
    TUTTI_TRY(curve(m, tutti__probe_one_way, one));
    TUTTI_TRY(curve(m, tutti__probe_folded, m->times->folded[link]));
    TUTTI_TRY(time_of(m, tutti__probe_exchange, 8, 0, &both[TUTTI_COMM_SIZES]));
    TUTTI_TRY(curve(m, tutti__probe_exchange, both));
    TUTTI_TRY(curve(m, tutti__probe_summed, m->times->summed[link]));
    return measure_ends(m, link, group->cost.hold[link]);
}

/* Seconds a byte that `times` are longer than those of the same without an addition. */
static void longer(const double *times, const double *without, double *ret)
{
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        ret[i] = times[i] > 0 && without[i] > 0
                     ? fmax(times[i] - without[i], 0.001 * without[i]) / (double)sizes[i]
                     : ret[i > 0 ? i - 1 : 0];
}

static void derive_link(const tutti_cost_times *times, tutti_comm_link link, tutti_comm_cost *cost)
{
    const double *one = times->one_way[link], *both = times->exchange[link];
    double there_and_back = one[TUTTI_COMM_SIZES], alpha = there_and_back / 2;
    if (!(there_and_back > 0))
        return;
    cost->link[link].alpha = alpha;
    cost->link[link].turn = fmax(both[TUTTI_COMM_SIZES] - alpha, 0);
    per_byte(one, there_and_back, cost->link[link].beta);
    per_byte(both, alpha + cost->link[link].turn, cost->link[link].exchange);
    longer(times->folded[link], one, cost->fold[link]);
    longer(times->summed[link], both, cost->sum[link]);
    per_byte(times->put[link], 0, cost->put[link]);
    per_byte(times->taken[link], 0, cost->take[link]);
}

static tutti_status measure_shared(tutti_comm *group, bench *m)
{
    tutti_cost_times *times = m->times;
    m->probe.comm = m->probe.call.comm = group;
    TUTTI_TRY(time_of(m, tutti__probe_phases, 8, 0, &times->phase));
    TUTTI_TRY(time_of(m, tutti__probe_little, 8, 0, &times->little));
    TUTTI_TRY(curve(m, tutti__probe_reduce_in_place, times->copy));
    TUTTI_TRY(curve(m, tutti__probe_pull, times->pull));
    char *arena = m->probe.a, *private = calloc(1, sizes[m->levels - 1]);
    if (!private)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to measure with");
    m->probe.a = private;
    tutti_status status = curve(m, tutti__probe_reduce_in_place, times->staged);
    m->probe.a = arena;
    free(private);
    return status;
}

static void derive_shared(const tutti_cost_times *times, tutti_comm_cost *cost)
{
    if (!(times->phase > 0))
        return;
    cost->phase = times->phase;
    cost->call = fmax(times->little - times->phase, 0);
    per_byte(times->copy, 2 * times->phase, cost->copy);
    per_byte(times->pull, 2 * times->phase, cost->pull);
    per_byte(times->staged, 2 * times->phase, cost->staged);
}

static tutti_status measure_all(tutti_comm *comm, bench *m)
{
    tutti_comm *within = comm->within ? comm->within : comm;
    TUTTI_TRY(curve(m, tutti__probe_add, m->times->add));
    TUTTI_TRY(curve(m, tutti__probe_add_into, m->times->add_into));
    TUTTI_TRY(curve(m, tutti__probe_copy, m->times->move));
    if (within->size > 1)
        TUTTI_TRY(measure_link(within, m, TUTTI_LINK_WITHIN));
    if (within->area)
        TUTTI_TRY(measure_shared(within, m));
    if (comm->between)
        TUTTI_TRY(measure_link(comm->between, m, TUTTI_LINK_BETWEEN));
    return TUTTI_OK;
}

static void derive(const bench *m, const tutti_comm *comm, tutti_comm_cost *cost)
{
    per_byte(m->times->add, 0, cost->gamma);
    per_byte(m->times->add_into, 0, cost->into);
    per_byte(m->times->move, 0, cost->move);
    derive_link(m->times, TUTTI_LINK_WITHIN, cost);
    if (!m->thorough)
        doubt_link(comm->within ? comm->within : comm, cost);
    derive_shared(m->times, cost);
    derive_link(m->times, TUTTI_LINK_BETWEEN, cost);
}

/* Rank 0's figures are everybody's. */
static tutti_status agree_on_cost(tutti_comm *comm, tutti_comm_cost cost)
{
    TUTTI_TRY(tutti_comm_broadcast(comm, &cost, sizeof cost, TUTTI_U8, 0, NULL));
    comm->cost = cost;
    memset(comm->chosen, 0, sizeof comm->chosen);
    atomic_store(&comm->bytes_sent, 0);
    for (tutti_comm **part = &comm->within; part;
         part = part == &comm->within ? &comm->between : NULL)
        if (*part) {
            int hosts = (*part)->cost.hosts;
            (*part)->cost = cost;
            (*part)->cost.hosts = hosts;
            memset((*part)->chosen, 0, sizeof(*part)->chosen);
        }
    return TUTTI_OK;
}

/* With buffers of its own. */
static tutti_status measure_briefly(tutti_comm *comm, bench *m)
{
    char **buffers[] = {&m->probe.a, &m->probe.b, &m->probe.c};
    size_t most = sizes[m->levels - 1];
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < TUTTI_COUNT(buffers) && status == TUTTI_OK; i++) {
        status = tutti_comm_allocate(comm, (int64_t)most, (void **)buffers[i]);
        if (status == TUTTI_OK)
            memset(*buffers[i], 0, most);
    }
    if (status == TUTTI_OK)
        status = measure_all(comm, m);
    for (size_t i = 0; i < TUTTI_COUNT(buffers); i++)
        tutti_comm_free(comm, *buffers[i]);
    return status;
}

double tutti__cost_quartile(const double *times, int count, size_t step)
{
    double sorted[TUTTI_COST_PASSES];
    int known = 0;
    for (int i = 0; i < count && known < TUTTI_COST_PASSES; i++) {
        double each = times[(size_t)i * step];
        if (!(each > 0) || !isfinite(each))
            continue;
        int at = known++;
        for (; at > 0 && sorted[at - 1] > each; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = each;
    }
    return known > 0 ? sorted[known / 4] : 0;
}

/* Of all passes, figure by figure. */
static tutti_cost_times settle_on(const tutti_cost_thorough *thorough)
{
    enum { FIGURES = sizeof(tutti_cost_times) / sizeof(double) };
    tutti_cost_times all;
    for (size_t i = 0; i < FIGURES; i++)
        ((double *)(void *)&all)[i] = tutti__cost_quartile(
            (const double *)(const void *)thorough->seen + i, TUTTI_COST_PASSES, FIGURES);
    return all;
}

tutti_status tutti__cost_measure(tutti_comm *comm, tutti_cost_thorough *thorough)
{
    tutti_cost_times times = {0};
    double seconds = thorough ? thorough->seconds : start_up;
    bench m = {.probe.comm = comm,
               .thorough = thorough != NULL,
               .levels = levels_for(START_UP_MOST),
               .times = &times,
               .until_ns = tutti__now_ns() + (int64_t)(seconds * 1e9)};
    m.probe.call = (tutti_collective){.comm = comm,
                                      .rank = comm->rank,
                                      .size = comm->size,
                                      .deadline_ns = tutti__comm_deadline(comm, NULL)};
    tutti_comm_cost cost = comm->cost;
    if (!thorough) {
        TUTTI_TRY(measure_briefly(comm, &m));
    } else {
        m.levels = levels_for(thorough->most);
        m.probe.a = thorough->a;
        m.probe.b = thorough->b;
        m.probe.c = thorough->c;
        TUTTI_TRY(measure_all(comm, &m));
        thorough->seen[thorough->passes++ % TUTTI_COST_PASSES] = times;
        times = settle_on(thorough);
    }
    derive(&m, comm, &cost);
    return agree_on_cost(comm, cost);
}
