/* native.c: the collectives of the library behind the engine (MPI's own), for groups of all ranks.
 */
#include "comm/coll/native.h"

#include "comm/comm.h"

static tutti_status native_run(tutti_collective *c)
{
    const tutti_fabric *fabric = c->comm->fabric; /* which has it, as tutti__coll_possible said */
    return fabric->open[0].engine->native->run(fabric->open[0].state, c);
}

/* What is inside is not known; a good library does as halving does. */
static double native_cost(const tutti_cost_query *q)
{
    return tutti__coll_find("halving")->on[TUTTI_ALL_REDUCE].cost(q);
}

#define NATIVE                                                                                     \
    {                                                                                              \
        native_run, native_cost, "the library's own"                                               \
    }

const tutti_coll tutti_coll_native = {
    .name = "native",
    .doc = "the collectives of the library behind the engine",
    .special = true,
    .native = true,
    .on =
        {
            [TUTTI_BARRIER] = NATIVE,
            [TUTTI_BROADCAST] = NATIVE,
            [TUTTI_REDUCE] = NATIVE,
            [TUTTI_ALL_REDUCE] = NATIVE,
            [TUTTI_REDUCE_SCATTER] = NATIVE,
            [TUTTI_ALL_GATHER] = NATIVE,
            [TUTTI_GATHER] = NATIVE,
            [TUTTI_SCATTER] = NATIVE,
            [TUTTI_ALL_TO_ALL] = NATIVE,
        },
};
