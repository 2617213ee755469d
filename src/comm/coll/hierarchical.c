/* hierarchical.c: within machines first, then between them. The first rank of each machine speaks
 * for it, so that M bytes, not M for each rank, cross the network. */
#include <math.h>
#include <string.h>

#include "comm/comm.h"

/* One step of the call in a part of the group. */
static tutti_status step(tutti_collective *c, tutti_comm *part, tutti_operation operation,
                         const void *in, int root, const char *algorithm)
{
    tutti_collective inner = *c;
    inner.comm = part;
    inner.rank = part->rank;
    inner.size = part->size;
    inner.operation = operation;
    inner.in = in;
    inner.root = root;
    inner.reduction = c->reduction == TUTTI_MEAN ? TUTTI_SUM : c->reduction;
    inner.tag = (uint32_t)(UINT32_C(0x80000000) | (++part->sequence & 0x7fffffff));
    if (part->size == 1) {
        if (operation == TUTTI_REDUCE && in != c->out && c->count)
            memcpy(c->out, in, (size_t)c->count * c->element);
        return TUTTI_OK;
    }
    const tutti_coll *by = algorithm ? tutti__coll_find(algorithm) : NULL;
    if (!by || !by->on[operation].run || (by->shared && !part->area))
        by = tutti__coll_choose(&inner);
    return by->on[operation].run(&inner);
}

static tutti_status all_reduce(tutti_collective *c)
{
    tutti_comm *within = c->comm->within, *between = c->comm->between;
    TUTTI_TRY(step(c, within, TUTTI_REDUCE, c->in, 0, c->inside));
    if (between) {
        TUTTI_TRY(step(c, between, TUTTI_ALL_REDUCE, c->out, 0, c->between));
        tutti__fold_finish(c->dtype, c->reduction, c->out, c->count, c->size);
    }
    return step(c, within, TUTTI_BROADCAST, c->out, 0, c->inside);
}

/* The number of a rank's machine among the group's, in the order of their first ranks. */
static int machine_of(const tutti_comm *comm, int rank)
{
    const int *machine = comm->fabric->machine;
    int number = 0;
    for (int i = 0; i < comm->size; i++) {
        int first = 0;
        while (machine[comm->members[first]] != machine[comm->members[i]])
            first++;
        if (machine[comm->members[i]] == machine[comm->members[rank]])
            return number;
        number += first == i;
    }
    return number;
}

static tutti_status broadcast(tutti_collective *c)
{
    tutti_comm *comm = c->comm;
    int home = machine_of(comm, c->root), root = 0;
    bool at_home = machine_of(comm, c->rank) == home;
    for (int i = 0; i < c->root; i++)
        root += machine_of(comm, i) == home;
    if (at_home)
        TUTTI_TRY(step(c, comm->within, TUTTI_BROADCAST, c->out, root, c->inside));
    if (comm->between)
        TUTTI_TRY(step(c, comm->between, TUTTI_BROADCAST, c->out, home, c->between));
    return at_home ? TUTTI_OK : step(c, comm->within, TUTTI_BROADCAST, c->out, 0, c->inside);
}

static tutti_status barrier(tutti_collective *c)
{
    TUTTI_TRY(step(c, c->comm->within, TUTTI_BARRIER, NULL, 0, NULL));
    if (c->comm->between)
        TUTTI_TRY(step(c, c->comm->between, TUTTI_BARRIER, NULL, 0, NULL));
    return step(c, c->comm->within, TUTTI_BARRIER, NULL, 0, NULL);
}

static double within_cost(const tutti_cost_query *q)
{
    int hosts = q->cost->hosts > 0 ? q->cost->hosts : 1;
    tutti_cost_query inner = {q->cost, (q->ranks + hosts - 1) / hosts, q->bytes, TUTTI_LINK_WITHIN};
    return inner.ranks > 1 ? tutti__coll_find("direct")->on[TUTTI_REDUCE].cost(&inner) : 0;
}
static double between_cost(const tutti_cost_query *q, tutti_operation operation)
{
    tutti_cost_query outer = {q->cost, q->cost->hosts, q->bytes, TUTTI_LINK_BETWEEN};
    static const char *const names[] = {"ring", "doubling", "tree", "halving"};
    double best = INFINITY;
    for (size_t i = 0; i < TUTTI_COUNT(names); i++) {
        const tutti_coll *by = tutti__coll_find(names[i]);
        if (by->on[operation].cost)
            best = fmin(best, by->on[operation].cost(&outer));
    }
    return best;
}
static double cost_all_reduce(const tutti_cost_query *q)
{
    return q->cost->hosts > 1 ? 2 * within_cost(q) + between_cost(q, TUTTI_ALL_REDUCE) : INFINITY;
}
static double cost_broadcast(const tutti_cost_query *q)
{
    return q->cost->hosts > 1 ? 2 * within_cost(q) + between_cost(q, TUTTI_BROADCAST) : INFINITY;
}
static double cost_barrier(const tutti_cost_query *q)
{
    return q->cost->hosts > 1 ? 2 * q->cost->phase + between_cost(q, TUTTI_BARRIER) : INFINITY;
}

const tutti_coll tutti_coll_hierarchical = {
    .name = "hierarchical",
    .doc = "within machines, then between them",
    .machines = true,
    .on =
        {
            [TUTTI_BARRIER] = {barrier, cost_barrier, "2f + log h a (h machines)"},
            [TUTTI_BROADCAST] = {broadcast, cost_broadcast, "2(2f + Mc) + best of h machines"},
            [TUTTI_ALL_REDUCE] = {all_reduce, cost_all_reduce, "2(2f + Mc) + best of h machines"},
        },
};
