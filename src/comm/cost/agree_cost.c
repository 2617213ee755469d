/* agree_cost.c: what the ranks of a group take to be the cost of their links: measured, or given,
 * and then one rank's figures for all. */
#include "comm/cost/agree_cost.h"

#include <math.h>
#include <string.h>

static void adopt(tutti_comm *comm, const tutti_comm_cost *cost)
{
    tutti__comm_take_cost(comm, cost);
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
    taken.lane[TUTTI_LINK_BETWEEN] = cost->lane[TUTTI_LINK_BETWEEN];
    double(*const far[])[TUTTI_COMM_SIZES] = {taken.fold, taken.fold_into, taken.sum, taken.put,
                                              taken.take};
    double(*const own[])[TUTTI_COMM_SIZES] = {cost->fold, cost->fold_into, cost->sum, cost->put,
                                              cost->take};
    for (size_t i = 0; i < TUTTI_COUNT(far); i++)
        memcpy(far[i][TUTTI_LINK_BETWEEN], own[i][TUTTI_LINK_BETWEEN], sizeof *far[i]);
    *cost = taken;
}

/* Rank 0's figures are everybody's, but those within machines where it is alone on its own. */
tutti_status tutti__cost_agree(tutti_comm *comm, tutti_comm_cost cost)
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

/* Among the ranks of a group of its own, so that this one's first operation is number 1. */
tutti_status tutti__cost_find(tutti_comm *comm, tutti_cost_wish wish)
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
    tutti_status status = tutti__comm_set_up(apart, &plain);
    if (status == TUTTI_OK)
        status = tutti_comm_broadcast(apart, &wished, 1, TUTTI_U8, 0, NULL);
    if (status == TUTTI_OK && wished == TUTTI_COST_MEASURED)
        status = tutti__cost_measure(apart, NULL);
    else if (status == TUTTI_OK && wished == TUTTI_COST_GLANCED)
        status = tutti__cost_glance(apart);
    if (status == TUTTI_OK)
        status = tutti_comm_barrier(apart, NULL); /* nobody begins while others still measure */
    if (status == TUTTI_OK)
        adopt(comm, &apart->cost);
    tutti__comm_destroy(apart);
    return status;
}
