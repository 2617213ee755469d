/* hierarchical.c: within machines first, then between them. The first rank of each machine speaks
 * for it, so that M bytes, not M for each rank, cross the network. */
#include "base/recycle.h"
#include "comm/coll/number.h"
#include "comm/comm.h"
#include <math.h>
#include <stdlib.h>

/* Of a step's messages, with what ranks of the whole group have called so far. */
static uint32_t part_tag(const tutti_collective *c, const tutti_collective *known, tutti_comm *part)
{
    return tutti__call_tag(tutti__call_number(known), ++part->sequence) ^
           (c->tag & TUTTI_CALL_MASK);
}

/* One step of the call in a part of the group. */
static tutti_status hierarchical_step(tutti_collective *c, tutti_comm *part,
                                      tutti_operation operation, const void *in, void *out,
                                      int64_t count, int root, const char *algorithm)
{
    tutti_collective inner = *c, known = *c;
    known.counts = NULL; /* of machines: all ranks know the call without them */
    inner.comm = part;
    inner.rank = part->rank;
    inner.size = part->size;
    inner.operation = operation;
    inner.in = in;
    inner.out = out;
    inner.count = count;
    inner.root = root;
    inner.reduction = c->reduction == TUTTI_MEAN ? TUTTI_SUM : c->reduction;
    inner.tag = part_tag(c, &known, part);
    if (part->size == 1) {
        if (operation != TUTTI_BARRIER)
            tutti__coll_copy(c, out, in, (size_t)count * c->element);
        return TUTTI_OK;
    }
    if (part->area) /* ranks of one machine see whether all are in the same call, as in any group */
        part->area->call = tutti__call_number(&known);
    const tutti_coll *by = algorithm ? tutti__coll_find(algorithm) : NULL;
    if (!by || !by->on[operation].run || (by->shared && !part->area))
        by = tutti__coll_choose(&inner);
    return tutti__coll_run(&inner, by);
}

static tutti_status hierarchical_all_reduce(tutti_collective *c)
{
    tutti_comm *within = c->comm->within, *between = c->comm->between;
    /* In shared memory all ranks fold a part each; one alone would take as long as all parts. */
    tutti_operation first = within->area ? TUTTI_ALL_REDUCE : TUTTI_REDUCE;
    TUTTI_TRY(hierarchical_step(c, within, first, c->in, c->out, c->count, 0, c->inside));
    if (between) {
        TUTTI_TRY(hierarchical_step(c, between, TUTTI_ALL_REDUCE, c->out, c->out, c->count, 0,
                                    c->between));
        tutti__fold_finish(c->dtype, c->reduction, c->out, c->count, c->size);
    }
    return hierarchical_step(c, within, TUTTI_BROADCAST, c->out, c->out, c->count, 0, c->inside);
}

/* Where the group's ranks are. */
typedef struct map {
    int *number;  /* [ranks]: of a rank's machine, in the order of their first ranks */
    int *members; /* [machines]: how many ranks it has */
    int machines;
} map;

static tutti_status map_ranks(const tutti_collective *c, map *ret)
{
    const tutti_comm *comm = c->comm;
    size_t ranks = (size_t)c->size, machines = (size_t)comm->fabric->machines;
    int *memory = tutti__recycle_zeros(ranks + 2 * machines, sizeof *memory);
    if (!memory)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d ranks", c->size);
    map m = {.number = memory, .members = memory + ranks};
    int *known = m.members + machines; /* of the fabric's machine: number + 1 */
    for (int r = 0; r < c->size; r++) {
        int *number = &known[comm->fabric->machine[comm->members[r]]];
        if (*number == 0)
            *number = ++m.machines;
        m.number[r] = *number - 1;
        m.members[m.number[r]]++;
    }
    *ret = m;
    return TUTTI_OK;
}

/* A rank's place among the ranks of its machine. */
static int place_of(const map *m, int rank)
{
    int place = 0;
    for (int r = 0; r < rank; r++)
        place += m->number[r] == m->number[rank];
    return place;
}

static tutti_status hierarchical_broadcast(tutti_collective *c)
{
    tutti_comm *comm = c->comm;
    map m;
    TUTTI_TRY(map_ranks(c, &m));
    int home = m.number[c->root], root = place_of(&m, c->root);
    bool at_home = m.number[c->rank] == home;
    tutti__recycle_free(m.number);
    if (at_home)
        TUTTI_TRY(hierarchical_step(c, comm->within, TUTTI_BROADCAST, c->out, c->out, c->count,
                                    root, c->inside));
    if (comm->between)
        TUTTI_TRY(hierarchical_step(c, comm->between, TUTTI_BROADCAST, c->out, c->out, c->count,
                                    home, c->between));
    return at_home ? TUTTI_OK
                   : hierarchical_step(c, comm->within, TUTTI_BROADCAST, c->out, c->out, c->count,
                                       0, c->inside);
}

/* To the first rank of each machine, from there to the root's, from that to the root. */
static tutti_status hierarchical_reduce(tutti_collective *c)
{
    tutti_comm *comm = c->comm;
    size_t bytes = (size_t)c->count * c->element;
    map m;
    TUTTI_TRY(map_ranks(c, &m));
    int home = m.number[c->root], root = place_of(&m, c->root);
    bool at_home = m.number[c->rank] == home;
    tutti__recycle_free(m.number);
    void *sum = c->out;
    if (c->rank != c->root)
        TUTTI_TRY(tutti__coll_scratch(c, bytes + 1, &sum));
    TUTTI_TRY(hierarchical_step(c, comm->within, TUTTI_REDUCE, c->in, sum, c->count, 0, c->inside));
    if (comm->between)
        TUTTI_TRY(hierarchical_step(c, comm->between, TUTTI_REDUCE, sum, sum, c->count, home,
                                    c->between));
    if (at_home && root > 0) {
        tutti_collective inner = *c;
        inner.comm = comm->within;
        inner.tag = part_tag(c, c, comm->within);
        if (comm->between)
            TUTTI_TRY(tutti__coll_send(&inner, root, sum, bytes));
        else if (c->rank == c->root)
            TUTTI_TRY(tutti__coll_recv(&inner, 0, c->out, bytes));
    }
    if (c->rank == c->root)
        tutti__fold_finish(c->dtype, c->reduction, c->out, c->count, c->size);
    return TUTTI_OK;
}

/* All blocks of a machine, machine after machine, in `blocks` of everybody. */
static tutti_status gather_blocks(tutti_collective *c, const map *m, char *blocks)
{
    tutti_comm *comm = c->comm;
    int64_t low = 0, *counts = tutti__recycle_zeros((size_t)m->machines + 1, sizeof *counts);
    if (!counts)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d machines", m->machines);
    for (int i = 0; i < m->machines; i++) {
        low += i < m->number[c->rank] ? m->members[i] * c->count : 0;
        counts[i] = m->members[i] * c->count;
    }
    char *own = blocks + (size_t)low * c->element;
    tutti_status status =
        hierarchical_step(c, comm->within, TUTTI_GATHER, c->in, own, c->count, 0, c->inside);
    if (status == TUTTI_OK && comm->between && m->machines > 0) {
        tutti_collective uneven = *c;
        uneven.counts = counts;
        status = hierarchical_step(&uneven, comm->between, TUTTI_ALL_GATHER, own, blocks,
                                   c->count * c->size / m->machines, 0, c->between);
    }
    tutti__recycle_free(counts);
    if (status == TUTTI_OK)
        status = hierarchical_step(c, comm->within, TUTTI_BROADCAST, blocks, blocks,
                                   c->count * c->size, 0, c->inside);
    return status;
}

/* From the order of machines into the order of ranks. */
static tutti_status hierarchical_all_gather(tutti_collective *c)
{
    size_t bytes = (size_t)c->count * c->element;
    void *blocks;
    map m;
    if (c->counts)
        return tutti__coll_find("ring")->on[TUTTI_ALL_GATHER].run(c);
    TUTTI_TRY(tutti__coll_scratch(c, bytes * (size_t)c->size + 1, &blocks));
    TUTTI_TRY(map_ranks(c, &m));
    tutti_status status = gather_blocks(c, &m, blocks);
    char *from = blocks;
    for (int i = 0; status == TUTTI_OK && i < m.machines; i++)
        for (int r = 0; r < c->size; r++)
            if (m.number[r] == i) {
                tutti__coll_copy(c, (char *)c->out + (size_t)r * bytes, from, bytes);
                from += bytes;
            }
    tutti__recycle_free(m.number);
    return status;
}

static tutti_status hierarchical_barrier(tutti_collective *c)
{
    TUTTI_TRY(hierarchical_step(c, c->comm->within, TUTTI_BARRIER, NULL, NULL, 0, 0, NULL));
    if (c->comm->between)
        TUTTI_TRY(hierarchical_step(c, c->comm->between, TUTTI_BARRIER, NULL, NULL, 0, 0, NULL));
    return hierarchical_step(c, c->comm->within, TUTTI_BARRIER, NULL, NULL, 0, 0, NULL);
}

/* One operation within a machine, by shared memory. */
static double within_cost(const tutti_cost_query *q, tutti_operation operation)
{
    int hosts = q->cost->hosts > 0 ? q->cost->hosts : 1;
    tutti_cost_query inner = {q->cost, (q->ranks + hosts - 1) / hosts, q->bytes, TUTTI_LINK_WITHIN};
    return inner.ranks > 1 ? tutti__coll_find("direct")->on[operation].cost(&inner) : 0;
}
static double between_cost(const tutti_cost_query *q, tutti_operation operation, double bytes)
{
    tutti_cost_query outer = {q->cost, q->cost->hosts, bytes, TUTTI_LINK_BETWEEN};
    static const char *const names[] = {"ring", "doubling", "tree", "halving"};
    double best = INFINITY;
    for (size_t i = 0; i < TUTTI_COUNT(names); i++) {
        const tutti_coll *by = tutti__coll_find(names[i]);
        if (by->on[operation].cost)
            best = fmin(best, tutti__coll_cost(&outer, by, operation));
    }
    return best;
}
static double hierarchical_cost_all_reduce(const tutti_cost_query *q)
{
    return q->cost->hosts > 1
               ? within_cost(q, TUTTI_ALL_REDUCE) + between_cost(q, TUTTI_ALL_REDUCE, q->bytes) +
                     within_cost(q, TUTTI_BROADCAST)
               : INFINITY;
}
static double hierarchical_cost_broadcast(const tutti_cost_query *q)
{
    return q->cost->hosts > 1
               ? 2 * within_cost(q, TUTTI_BROADCAST) + between_cost(q, TUTTI_BROADCAST, q->bytes)
               : INFINITY;
}
static double cost_reduce(const tutti_cost_query *q)
{
    return q->cost->hosts > 1
               ? within_cost(q, TUTTI_REDUCE) + between_cost(q, TUTTI_REDUCE, q->bytes)
               : INFINITY;
}
/* Blocks of machines cross the network; everything goes to everybody within, and into its place. */
static double hierarchical_cost_all_gather(const tutti_cost_query *q)
{
    if (q->cost->hosts < 2)
        return INFINITY;
    tutti_cost_query all = {q->cost, q->ranks, q->bytes * q->ranks, TUTTI_LINK_WITHIN};
    return within_cost(q, TUTTI_GATHER) +
           between_cost(q, TUTTI_ALL_GATHER, all.bytes / q->cost->hosts) +
           within_cost(&all, TUTTI_BROADCAST) + tutti__coll_cost_move(q, all.bytes);
}
static double hierarchical_cost_barrier(const tutti_cost_query *q)
{
    return q->cost->hosts > 1 ? 2 * q->cost->phase + between_cost(q, TUTTI_BARRIER, 0) : INFINITY;
}

const tutti_coll tutti_coll_hierarchical = {
    .name = "hierarchical",
    .doc = "within machines, then between them",
    .machines = true,
    .on =
        {
            [TUTTI_BARRIER] = {hierarchical_barrier, hierarchical_cost_barrier,
                               "2f + log h a (h machines)"},
            [TUTTI_BROADCAST] = {hierarchical_broadcast, hierarchical_cost_broadcast,
                                 "2(2f + Mm) + best of h machines"},
            [TUTTI_REDUCE] = {hierarchical_reduce, cost_reduce,
                              "2f + (p/h-1)Mg + best of h machines"},
            [TUTTI_ALL_REDUCE] = {hierarchical_all_reduce, hierarchical_cost_all_reduce,
                                  "4f + Mc + Mm + best of h machines"},
            [TUTTI_ALL_GATHER] = {hierarchical_all_gather, hierarchical_cost_all_gather,
                                  "4f + (p/h + 2p)Mm + best of h machines (pM/h)"},
        },
};
