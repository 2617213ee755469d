/* measure.c: the constants of the cost model, measured among the ranks that will use them.
 *
 * One way: even ranks send to the next, all at once, since pairs of an algorithm share the machine
 * too; the odd one answers with 8 bytes, whose time does not count. (Two large messages to and fro
 * are no measure: each rank would have two buffers in its caches, and an operation has one.) In a
 * benchmark the slowest pair counts, as in an operation, which goes on when all have theirs.
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
#include "comm/coll/lane.h"
#include "comm/cost/agree_cost.h"
#include "comm/cost/derive.h"
#include "comm/cost/timing.h"

static size_t size_at(int level)
{
    return (size_t)tutti__cost_sizes[level];
}

static const double start_up = 0.2, one_glance = 0.02; /* seconds */
/* Bytes; half of the most tells a benchmark when the last cache fills, and takes long. */
enum { START_UP_MOST = 16 << 20, START_UP_NOT = 8 << 20, GLANCE_MOST = 1 << 20 };

/* A piece of work at all sizes; all are the work of one group. */
typedef struct curve {
    tutti_probe_work *work;
    tutti_comm *group;
    uint32_t tag;
    double *times;
    int lanes; /* that do it at the same time, on so many bytes each */
} curve;

typedef struct bench {
    tutti_timing timing;
    bool glance;       /* only what messages cost */
    double seconds;    /* that it may take, where it is no benchmark */
    int first, levels; /* sizes that are measured: [first, levels); the last stands for larger */
    tutti_cost_times *times;
    curve curves[40];
    int count;
} bench;

static int levels_for(int64_t most)
{
    int levels = 1;
    while (levels < TUTTI_COMM_SIZES && most > (int64_t)size_at(levels - 1))
        levels++;
    return levels;
}

int64_t tutti__cost_room(int64_t most)
{
    return (int64_t)size_at(levels_for(most) - 1);
}

static void work_in(bench *m, tutti_comm *group, uint32_t tag, int lanes)
{
    m->timing.probe.lanes = lanes;
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
    m->curves[m->count++] = (curve){work, group, tag, times, 1};
}

static tutti_status time_of(bench *m, tutti_probe_work *work, size_t bytes, double *least)
{
    TUTTI_TRY(tutti__timing_once(&m->timing, work, bytes, 0, least));
    return tutti__timing_often(&m->timing, work, bytes, least);
}

/* Of lanes a start-up has time for two sizes, which stand for those above them. */
static bool takes(const bench *m, const curve *c, int level)
{
    enum { SMALLER = 256 << 10, LARGER = 4 << 20 };
    size_t each = size_at(level), all = each * (size_t)c->lanes;
    if (all > size_at(m->levels - 1) || (m->first > 0 && all <= size_at(m->first - 1)))
        return false;
    if (c->lanes > 1)
        return m->timing.thorough ? level > 0 : each == SMALLER || each == LARGER;
    return m->timing.thorough || each != START_UP_NOT;
}

/* From the smallest size to the largest there is time for; a benchmark calls each but once here. */
static tutti_status go_up(bench *m, const curve *c)
{
    double expected = 0;
    work_in(m, c->group, c->tag, c->lanes);
    for (int i = 0; i < m->levels; i++) {
        if (i > 0)
            expected *= tutti__cost_sizes[i] / tutti__cost_sizes[i - 1];
        if (!takes(m, c, i))
            continue;
        TUTTI_TRY(tutti__timing_once(&m->timing, c->work, size_at(i), expected, &c->times[i]));
        if (!m->timing.thorough)
            TUTTI_TRY(tutti__timing_often(&m->timing, c->work, size_at(i), &c->times[i]));
        expected = c->times[i] > 0 ? c->times[i] : expected;
    }
    return TUTTI_OK;
}

/* Size by size, from the largest down. The last cache keeps for dozens of calls what smaller ones
 * left there, and makes larger ones faster by a fourth; and it takes dozens of calls to take in the
 * buffers of a size, which all curves share. */
static tutti_status go_down(bench *m)
{
    for (int i = m->levels - 1; i >= 0; i--)
        for (const curve *c = m->curves; c < m->curves + m->count; c++) {
            if (!takes(m, c, i))
                continue;
            work_in(m, c->group, c->tag, c->lanes);
            TUTTI_TRY(tutti__timing_often(&m->timing, c->work, size_at(i), &c->times[i]));
        }
    return TUTTI_OK;
}

/* Sender and receiver by themselves, as far as the link holds a message; the smallest at any price.
 * Who sends finds a receiver that waits, who receives comes when all was sent. */
static tutti_status measure_ends(bench *m, tutti_comm *group, tutti_comm_link link)
{
    tutti_probe *probe = &m->timing.probe;
    work_in(m, group, new_tag(group), 1);
    for (int i = m->first; i < m->levels && tutti__cost_sizes[i] < group->cost.hold[link]; i++) {
        double *put = &m->times->put[link][i], *taken = &m->times->taken[link][i];
        double each = m->times->one_way[link][i];
        int rounds;
        probe->pause = 2 * each;
        TUTTI_TRY(tutti__timing_rounds(&m->timing, 4 * each, m->timing.thorough ? 50 : 4, &rounds));
        rounds = i == 0 && rounds < 1 ? 1 : rounds;
        for (int round = 0; round < rounds; round++) {
            TUTTI_TRY(tutti__probe_late(probe, size_at(i)));
            TUTTI_TRY(tutti__probe_prompt(probe, size_at(i)));
            if (round == 0 && rounds > 1)
                continue; /* for the caches */
            *put = *put > 0 ? fmin(*put, probe->put) : probe->put;
            *taken = *taken > 0 ? fmin(*taken, probe->taken) : probe->taken;
        }
    }
    return TUTTI_OK;
}

static void list_lanes(bench *m, tutti_comm *group, tutti_comm_link link, int lanes)
{
    tutti_cost_times *times = m->times;
    uint32_t tag = new_tag(group);
    int first = m->count;
    add_curve(m, group, tag, tutti__probe_one_way, times->lane[link].one_way);
    add_curve(m, group, tag, tutti__probe_folded, times->lane[link].folded);
    add_curve(m, group, tag, tutti__probe_exchange, times->lane[link].exchange);
    add_curve(m, group, tag, tutti__probe_summed, times->lane[link].summed);
    if (m->timing.thorough) {
        if (group->size > 2)
            add_curve(m, group, tag, tutti__probe_of_two, times->lane[link].of_two);
        add_curve(m, group, tag, tutti__probe_folded_into, times->lane[link].folded_into);
        add_curve(m, group, tag, tutti__probe_add, times->lane[link].add);
        add_curve(m, group, tag, tutti__probe_copy, times->lane[link].move);
        add_curve(m, group, tag, tutti__probe_add_into, times->lane[link].add_into);
    }
    while (first < m->count)
        m->curves[first++].lanes = lanes;
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
    int lanes = tutti__lanes_among(&group->cost, group->size);
    if (lanes > 1)
        list_lanes(m, group, link, lanes);
}

/* What has no bytes to speak of. */
static tutti_status measure_small(bench *m, tutti_comm *group, tutti_comm_link link)
{
    tutti_cost_times *times = m->times;
    int lanes = tutti__lanes_among(&group->cost, group->size);
    work_in(m, group, new_tag(group), 1);
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
    if (lanes < 2)
        return TUTTI_OK;
    work_in(m, group, new_tag(group), lanes);
    return time_of(m, tutti__probe_nothing, 8, &times->lane[link].start);
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

/* With buffers of its own. Its time begins when all ranks have theirs: who waits for a rank that is
 * still at it would take that for the link. */
static tutti_status measure_briefly(tutti_comm *comm, bench *m)
{
    char **buffers[] = {&m->timing.probe.a, &m->timing.probe.b, &m->timing.probe.c};
    size_t most = size_at(m->levels - 1);
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
        m.first = thorough->above < (int64_t)size_at(0) ? 0 : levels_for(thorough->above);
        m.times = &thorough->seen[thorough->pass % TUTTI_COST_PASSES];
        m.timing.until_ns = tutti__now_ns() + (int64_t)(thorough->seconds * 1e9);
        m.timing.probe.a = thorough->a;
        m.timing.probe.b = thorough->b;
        m.timing.probe.c = thorough->c;
        TUTTI_TRY(measure_all(&m, comm));
        times = tutti__cost_of_passes(thorough);
    }
    tutti__cost_derive(&times, !thorough, comm, &cost);
    return tutti__cost_agree(comm, cost);
}

/* Messages pass through memory of the engine's, so the arena is left alone. */
tutti_status tutti__cost_glance(tutti_comm *comm)
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
    tutti__cost_derive_glance(&times, comm, &cost);
    return tutti__cost_agree(comm, cost);
}
