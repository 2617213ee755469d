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

#include "base/pool.h"
#include "base/world.h"
#include "comm/comm.h"
#include "comm/timing.h"

static const size_t sizes[TUTTI_COMM_SIZES] = {1 << 12, 1 << 15, 1 << 16, 1 << 18, 1 << 19, 1 << 20,
                                               1 << 22, 1 << 23, 1 << 24, 1 << 25, 1 << 26};

static const double start_up = 0.2, one_glance = 0.02; /* seconds */
/* Bytes; half of the most tells a benchmark when the last cache fills, and takes long. */
enum { START_UP_MOST = 16 << 20, START_UP_NOT = 8 << 20, GLANCE_MOST = 1 << 20 };

/* A piece of work at all sizes; all are the work of one group. */
typedef struct curve {
    tutti_probe_work *work;
    tutti_comm *group;
    uint32_t tag;
    double *times;
} curve;

typedef struct bench {
    tutti_timing timing;
    bool glance;       /* only what messages cost */
    double seconds;    /* that it may take, where it is no benchmark */
    int first, levels; /* sizes that are measured: [first, levels); the last stands for larger */
    tutti_cost_times *times;
    curve curves[16];
    int count;
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

static void work_in(bench *m, tutti_comm *group, uint32_t tag)
{
    m->timing.probe.comm = m->timing.probe.call.comm = group;
    m->timing.probe.call.rank = group->rank;
    m->timing.probe.call.size = group->size;
    m->timing.probe.call.tag = tag;
}

static uint32_t new_tag(tutti_comm *group)
{
    return TUTTI_COLLECTIVE_TAG | ((uint32_t)++group->sequence & TUTTI_SEQUENCE_MASK);
}

static void add_curve(bench *m, tutti_comm *group, uint32_t tag, tutti_probe_work *work,
                      double *times)
{
    m->curves[m->count++] = (curve){.work = work, .group = group, .tag = tag, .times = times};
}

static tutti_status time_of(bench *m, tutti_probe_work *work, size_t bytes, double *least)
{
    TUTTI_TRY(tutti__timing_once(&m->timing, work, bytes, 0, least));
    return tutti__timing_often(&m->timing, work, bytes, least);
}

/* From the smallest size to the largest there is time for; a benchmark calls each but once here. */
static tutti_status go_up(bench *m, const curve *c)
{
    double expected = 0;
    work_in(m, c->group, c->tag);
    for (int i = m->first; i < m->levels; i++) {
        if (i > m->first)
            expected *= (double)sizes[i] / (double)sizes[i - 1];
        if (!m->timing.thorough && sizes[i] == START_UP_NOT)
            continue;
        TUTTI_TRY(tutti__timing_once(&m->timing, c->work, sizes[i], expected, &c->times[i]));
        if (!m->timing.thorough)
            TUTTI_TRY(tutti__timing_often(&m->timing, c->work, sizes[i], &c->times[i]));
        expected = c->times[i] > 0 ? c->times[i] : expected;
    }
    return TUTTI_OK;
}

/* Size by size, from the largest down. The last cache keeps for dozens of calls what smaller ones
 * left there, and makes larger ones faster by a fourth; and it takes dozens of calls to take in the
 * buffers of a size, which all curves share. */
static tutti_status go_down(bench *m)
{
    for (int i = m->levels - 1; i >= m->first; i--)
        for (const curve *c = m->curves; c < m->curves + m->count; c++) {
            work_in(m, c->group, c->tag);
            TUTTI_TRY(tutti__timing_often(&m->timing, c->work, sizes[i], &c->times[i]));
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
enum { DOUBTED = 50 }; /* times the guess */
static void doubt(double *measured, double guess)
{
    if (*measured > DOUBTED * guess)
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
 * Who sends finds a receiver that waits, who receives comes when all was sent. */
static tutti_status measure_ends(bench *m, tutti_comm *group, tutti_comm_link link)
{
    tutti_probe *probe = &m->timing.probe;
    work_in(m, group, new_tag(group));
    for (int i = m->first; i < m->levels && (double)sizes[i] < group->cost.hold[link]; i++) {
        double *put = &m->times->put[link][i], *taken = &m->times->taken[link][i];
        double each = m->times->one_way[link][i];
        int rounds;
        probe->pause = 2 * each;
        TUTTI_TRY(tutti__timing_rounds(&m->timing, 4 * each, m->timing.thorough ? 50 : 4, &rounds));
        rounds = i == 0 && rounds < 1 ? 1 : rounds;
        for (int round = 0; round < rounds; round++) {
            TUTTI_TRY(tutti__probe_late(probe, sizes[i]));
            TUTTI_TRY(tutti__probe_prompt(probe, sizes[i]));
            if (round == 0 && rounds > 1)
                continue; /* for the caches */
            *put = *put > 0 ? fmin(*put, probe->put) : probe->put;
            *taken = *taken > 0 ? fmin(*taken, probe->taken) : probe->taken;
        }
    }
    return TUTTI_OK;
}

static void list_link(bench *m, tutti_comm *group, tutti_comm_link link)
{
    tutti_cost_times *times = m->times;
    uint32_t tag = new_tag(group);
    add_curve(m, group, tag, tutti__probe_one_way, times->one_way[link]);
    if (m->glance)
        return;
    add_curve(m, group, tag, tutti__probe_folded, times->folded[link]);
    if (m->timing.thorough)
        add_curve(m, group, tag, tutti__probe_folded_into, times->folded_into[link]);
    add_curve(m, group, tag, tutti__probe_exchange, times->exchange[link]);
    add_curve(m, group, tag, tutti__probe_summed, times->summed[link]);
}

/* What has no bytes to speak of. */
static tutti_status measure_small(bench *m, tutti_comm *group, tutti_comm_link link)
{
    tutti_cost_times *times = m->times;
    work_in(m, group, new_tag(group));
    if (group->size > 1)
        TUTTI_TRY(time_of(m, tutti__probe_one_way, 8, &times->one_way[link][TUTTI_COMM_SIZES]));
    if (m->glance)
        return TUTTI_OK;
    if (group->size > 1)
        TUTTI_TRY(time_of(m, tutti__probe_exchange, 8, &times->exchange[link][TUTTI_COMM_SIZES]));
    if (link == TUTTI_LINK_WITHIN && group->area) {
        TUTTI_TRY(time_of(m, tutti__probe_phases, 8, &times->phase));
        TUTTI_TRY(time_of(m, tutti__probe_little, 8, &times->little));
    }
    return TUTTI_OK;
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
    longer(times->folded_into[link], one, cost->fold_into[link]);
    longer(times->summed[link], both, cost->sum[link]);
    per_byte(times->put[link], 0, cost->put[link]);
    per_byte(times->taken[link], 0, cost->take[link]);
}

/* Where ranks share cores, those that pull at once were slower than one by itself is. */
static void derive_shared(const tutti_cost_times *times, const tutti_comm *within,
                          tutti_comm_cost *cost)
{
    int cpus = within->fabric->cpus, others = within->size - 1;
    if (!(times->phase > 0))
        return;
    cost->phase = times->phase;
    cost->call = fmax(times->little - times->phase, 0);
    per_byte(times->copy, 2 * times->phase, cost->copy);
    per_byte(times->pull, 2 * times->phase, cost->pull);
    longer(times->collect, times->pull, cost->source);
    for (int i = 0; i < TUTTI_COMM_SIZES; i++)
        cost->source[i] /= others;
    cost->alone = others > cpus ? (double)cpus / others : 1;
}

static void list_curves(bench *m, tutti_comm *comm)
{
    tutti_comm *within = comm->within ? comm->within : comm;
    tutti_cost_times *times = m->times;
    if (!m->glance) {
        add_curve(m, comm, 0, tutti__probe_add, times->add);
        add_curve(m, comm, 0, tutti__probe_copy, times->move);
    }
    if (within->size > 1)
        list_link(m, within, TUTTI_LINK_WITHIN);
    if (within->area && !m->glance) {
        add_curve(m, within, 0, tutti__probe_reduce_in_place, times->copy);
        add_curve(m, within, 0, tutti__probe_pull, times->pull);
        add_curve(m, within, 0, tutti__probe_collect, times->collect);
    }
    /* Last, since only this has three buffers, of which a last cache may not hold all. */
    if (!m->glance)
        add_curve(m, comm, 0, tutti__probe_add_into, times->add_into);
    if (comm->between)
        list_link(m, comm->between, TUTTI_LINK_BETWEEN);
}

/* Between measuring within machines and between them, of which some have one rank and nothing to
 * measure within: who waits for a rank that is still at it would take that for the link. */
static tutti_status wait_for_all(tutti_comm *comm)
{
    return comm->hosts > 1 ? tutti_comm_barrier(comm, NULL) : TUTTI_OK;
}

static tutti_status measure_all(bench *m, tutti_comm *comm)
{
    tutti_comm *within = comm->within ? comm->within : comm;
    if (m->first == 0) {
        TUTTI_TRY(measure_small(m, within, TUTTI_LINK_WITHIN));
        TUTTI_TRY(wait_for_all(comm));
        if (comm->between)
            TUTTI_TRY(measure_small(m, comm->between, TUTTI_LINK_BETWEEN));
        TUTTI_TRY(wait_for_all(comm));
    }
    list_curves(m, comm);
    const curve *c = m->curves, *end = m->curves + m->count;
    for (; c < end && (!comm->between || c->group != comm->between); c++)
        TUTTI_TRY(go_up(m, c));
    TUTTI_TRY(wait_for_all(comm));
    if (!m->timing.thorough && comm->hosts > 1)
        m->timing.until_ns = tutti__now_ns() + (int64_t)(m->seconds * 0.5e9);
    for (; c < end; c++)
        TUTTI_TRY(go_up(m, c));
    if (m->timing.thorough)
        TUTTI_TRY(go_down(m));
    if (m->glance)
        return TUTTI_OK;
    if (within->size > 1)
        TUTTI_TRY(measure_ends(m, within, TUTTI_LINK_WITHIN));
    TUTTI_TRY(wait_for_all(comm));
    return comm->between ? measure_ends(m, comm->between, TUTTI_LINK_BETWEEN) : TUTTI_OK;
}

static void derive(const tutti_cost_times *times, bool in_doubt, const tutti_comm *comm,
                   tutti_comm_cost *cost)
{
    const tutti_comm *within = comm->within ? comm->within : comm;
    per_byte(times->add, 0, cost->gamma);
    per_byte(times->add_into, 0, cost->into);
    per_byte(times->move, 0, cost->move);
    derive_link(times, TUTTI_LINK_WITHIN, cost);
    if (in_doubt)
        doubt_link(within, cost);
    derive_shared(times, within, cost);
    derive_link(times, TUTTI_LINK_BETWEEN, cost);
}

static void adopt(tutti_comm *comm, const tutti_comm_cost *cost)
{
    int hosts = comm->cost.hosts;
    comm->cost = *cost;
    comm->cost.hosts = hosts;
    memset(comm->chosen, 0, sizeof comm->chosen);
    if (comm->within)
        adopt(comm->within, cost);
    if (comm->between)
        adopt(comm->between, cost);
}

/* The first rank that is not alone on its machine; 0: rank 0 is not, or all are. */
static int first_near(const tutti_comm *comm)
{
    const int *machine = comm->fabric->machine;
    for (int i = 0; i < comm->size; i++)
        for (int j = 0; j < comm->size; j++)
            if (j != i && machine[comm->members[i]] == machine[comm->members[j]])
                return i;
    return 0;
}

/* What `from` knows of ranks that share a machine. */
static void take_near(tutti_comm_cost *cost, const tutti_comm_cost *from)
{
    tutti_comm_cost taken = *from;
    taken.hosts = cost->hosts;
    taken.link[TUTTI_LINK_BETWEEN] = cost->link[TUTTI_LINK_BETWEEN];
    double(*const far[])[TUTTI_COMM_SIZES] = {taken.fold, taken.fold_into, taken.sum, taken.put,
                                              taken.take};
    double(*const own[])[TUTTI_COMM_SIZES] = {cost->fold, cost->fold_into, cost->sum, cost->put,
                                              cost->take};
    for (size_t i = 0; i < TUTTI_COUNT(far); i++)
        memcpy(far[i][TUTTI_LINK_BETWEEN], own[i][TUTTI_LINK_BETWEEN], sizeof *far[i]);
    *cost = taken;
}

/* Rank 0's figures are everybody's, but those within machines where it is alone on its own. */
static tutti_status agree_on_cost(tutti_comm *comm, tutti_comm_cost cost)
{
    tutti_comm_cost near = cost;
    int first = first_near(comm);
    TUTTI_TRY(tutti_comm_broadcast(comm, &cost, sizeof cost, TUTTI_U8, 0, NULL));
    if (first > 0) {
        TUTTI_TRY(tutti_comm_broadcast(comm, &near, sizeof near, TUTTI_U8, first, NULL));
        take_near(&cost, &near);
    }
    adopt(comm, &cost);
    atomic_store(&comm->bytes_sent, 0);
    return TUTTI_OK;
}

/* With buffers of its own. Its time begins when all ranks have theirs: who waits for a rank that is
 * still at it would take that for the link. */
static tutti_status measure_briefly(tutti_comm *comm, bench *m)
{
    char **buffers[] = {&m->timing.probe.a, &m->timing.probe.b, &m->timing.probe.c};
    size_t most = sizes[m->levels - 1];
    tutti_status status = TUTTI_OK;
    for (size_t i = 0; i < TUTTI_COUNT(buffers) && status == TUTTI_OK; i++) {
        status = tutti_comm_allocate(comm, (int64_t)most, (void **)buffers[i]);
        if (status == TUTTI_OK)
            memset(*buffers[i], 0, most);
    }
    if (status == TUTTI_OK)
        status = tutti_comm_barrier(comm, NULL);
    double share = comm->hosts > 1 ? 0.5 : 1; /* the other half is for links between machines */
    m->timing.until_ns = tutti__now_ns() + (int64_t)(m->seconds * share * 1e9);
    if (status == TUTTI_OK)
        status = measure_all(m, comm);
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
    bench m = {.timing.thorough = thorough != NULL,
               .timing.probe.call.deadline_ns = tutti__comm_deadline(comm, NULL),
               .seconds = start_up,
               .levels = levels_for(START_UP_MOST),
               .times = &times};
    tutti_comm_cost cost = comm->cost;
    if (!thorough) {
        TUTTI_TRY(measure_briefly(comm, &m));
    } else {
        m.levels = levels_for(thorough->most);
        m.first = thorough->above < (int64_t)sizes[0] ? 0 : levels_for(thorough->above);
        m.times = &thorough->seen[thorough->pass % TUTTI_COST_PASSES];
        m.timing.until_ns = tutti__now_ns() + (int64_t)(thorough->seconds * 1e9);
        m.timing.probe.a = thorough->a;
        m.timing.probe.b = thorough->b;
        m.timing.probe.c = thorough->c;
        TUTTI_TRY(measure_all(&m, comm));
        times = settle_on(thorough);
    }
    derive(&times, !thorough, comm, &cost);
    return agree_on_cost(comm, cost);
}

/* The other constants are guesses, of which those that have to do with messages become longer or
 * shorter like one message: measured in so short a time they would tell more of who else is at work
 * than of the links. */
static void derive_glance(const tutti_cost_times *times, tutti_comm_link link,
                          tutti_comm_cost *cost)
{
    double there_and_back = times->one_way[link][TUTTI_COMM_SIZES];
    double longer_by = there_and_back / 2 / cost->link[link].alpha;
    if (!(there_and_back > 0))
        return;
    if (link == TUTTI_LINK_WITHIN && longer_by > DOUBTED)
        longer_by = 1;
    cost->link[link].alpha *= longer_by;
    cost->link[link].turn *= longer_by;
    if (link == TUTTI_LINK_WITHIN)
        cost->phase *= longer_by;
    per_byte(times->one_way[link], there_and_back, cost->link[link].beta);
    memcpy(cost->link[link].exchange, cost->link[link].beta, sizeof cost->link[link].exchange);
}

/* Messages pass through memory of the engine's, so the arena is left alone. */
static tutti_status glance(tutti_comm *comm)
{
    tutti_cost_times times = {0};
    bench m = {.glance = true,
               .timing.probe.call.deadline_ns = tutti__comm_deadline(comm, NULL),
               .timing.until_ns = tutti__now_ns() + (int64_t)(one_glance * 1e9),
               .seconds = one_glance,
               .levels = levels_for(GLANCE_MOST),
               .times = &times};
    tutti_comm_cost cost = comm->cost;
    char *memory = calloc(2, GLANCE_MOST);
    if (!memory)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to measure links with");
    m.timing.probe.a = memory;
    m.timing.probe.b = memory + GLANCE_MOST;
    tutti_status status = measure_all(&m, comm);
    free(memory);
    TUTTI_TRY(status);
    derive_glance(&times, TUTTI_LINK_WITHIN, &cost);
    doubt_link(comm->within ? comm->within : comm, &cost);
    derive_glance(&times, TUTTI_LINK_BETWEEN, &cost);
    return agree_on_cost(comm, cost);
}

/* Among the ranks of a group of its own, so that this one's first operation is number 1. */
tutti_status tutti__cost_settle(tutti_comm *comm, tutti_cost_wish wish)
{
    tutti_comm *apart;
    uint8_t wished = (uint8_t)wish;
    /* What calls may take is not for this: it is part of meeting, of which others may come late. */
    tutti_comm_options plain = tutti__comm_defaults(TUTTI_COMM_OPTIONS(.timeout = 60));
    plain.timeout = fmax(plain.timeout, comm->timeout);
    plain.all_reduce = NULL;
    plain.cost = &comm->cost;
    TUTTI_TRY(tutti__comm_create(comm->fabric, comm->size, comm->members, comm->rank,
                                 TUTTI_MEASURING_CONTEXT, &plain, &apart));
    apart->inner = true;
    tutti_status status = tutti__comm_settle(apart, &plain);
    if (status == TUTTI_OK)
        status = tutti_comm_broadcast(apart, &wished, 1, TUTTI_U8, 0, NULL);
    if (status == TUTTI_OK && wished == TUTTI_COST_MEASURED)
        status = tutti__cost_measure(apart, NULL);
    else if (status == TUTTI_OK && wished == TUTTI_COST_GLANCED)
        status = glance(apart);
    if (status == TUTTI_OK)
        status = tutti_comm_barrier(apart, NULL); /* nobody begins while others still measure */
    if (status == TUTTI_OK)
        adopt(comm, &apart->cost);
    tutti__comm_destroy(apart);
    return status;
}
