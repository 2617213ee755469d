/* pairwise.c: all_to_all in p - 1 steps; in step k rank r gives to r + k and takes from r - k, so
 * that each has one partner each way at a time. */
#include "comm/coll/coll.h"

static tutti_status all_to_all(tutti_collective *c)
{
    size_t bytes = (size_t)c->count * c->element;
    const char *in = c->in;
    char *out = c->out;
    tutti__coll_copy(c, out + (size_t)c->rank * bytes, in + (size_t)c->rank * bytes, bytes);
    for (int step = 1; step < c->size; step++) {
        int to = (c->rank + step) % c->size, from = (c->rank - step + c->size) % c->size;
        TUTTI_TRY(tutti__coll_exchange(c, to, in + (size_t)to * bytes, bytes, from,
                                       out + (size_t)from * bytes, bytes));
    }
    return TUTTI_OK;
}

static double cost_all_to_all(const tutti_cost_query *q)
{
    double touched = 2 * q->bytes * q->ranks;
    return (q->ranks - 1) * tutti__coll_cost_exchange_block(q, q->bytes, touched) +
           tutti__coll_cost_own(q);
}

const tutti_coll tutti_coll_pairwise = {
    .name = "pairwise",
    .doc = "one partner at a time",
    .all_cross = true,
    .on = {[TUTTI_ALL_TO_ALL] = {all_to_all, cost_all_to_all, "(p-1)(a + Mb) + Mm"}},
};
