/* doubling.c: recursive doubling. In step k ranks that differ in bit k exchange all they have;
 * log2 p steps of the whole message: the fastest for small ones. Ranks beyond the largest power of
 * two give theirs to a partner first and get the result from it. */
#include <math.h>

#include "comm/coll/coll.h"

/* The largest power of two that is no more than the ranks. */
static int half_world(int size)
{
    int world = 1;
    while (world * 2 <= size)
        world *= 2;
    return world;
}

static tutti_status doubling_all_reduce(tutti_collective *c)
{
    size_t bytes = (size_t)c->count * c->element;
    int world = half_world(c->size), extra = c->size - world, partner = c->rank ^ 1;
    bool paired = c->rank < 2 * extra;
    void *room;
    TUTTI_TRY(tutti__coll_scratch(c, TUTTI_FOLD_ROOM, &room));
    tutti__coll_copy(c, c->out, c->in, bytes);
    if (paired && c->rank % 2 == 1) { /* gives, and waits for the result */
        TUTTI_TRY(tutti__coll_exchange_fold(c, partner, c->out, c->count, partner, NULL, NULL, 0,
                                            true, room));
        return tutti__coll_recv(c, partner, c->out, bytes);
    }
    if (paired) {
        TUTTI_TRY(tutti__coll_exchange_fold(c, partner, NULL, 0, partner, c->out, c->out, c->count,
                                            true, room));
    }
    int place = paired ? c->rank / 2 : c->rank - extra;
    for (int step = 1; step < world; step *= 2) {
        int other = place ^ step, peer = other < extra ? other * 2 : other + extra;
        /* Both fold lower before higher place: same bits. */
        TUTTI_TRY(tutti__coll_exchange_fold(c, peer, c->out, c->count, peer, c->out, c->out,
                                            c->count, place < other, room));
    }
    tutti__fold_finish(c->dtype, c->reduction, c->out, c->count, c->size);
    return paired ? tutti__coll_send(c, partner, c->out, bytes) : TUTTI_OK;
}

/* Distances 1, 2, 4, …: every rank hears of every other (dissemination). */
static tutti_status doubling_barrier(tutti_collective *c)
{
    char nothing = 0, room = 0;
    for (int step = 1; step < c->size; step *= 2)
        TUTTI_TRY(tutti__coll_exchange(c, (c->rank + step) % c->size, &nothing, 0,
                                       (c->rank - step + c->size) % c->size, &room, 0));
    return TUTTI_OK;
}

static double extra_steps(int ranks)
{
    return half_world(ranks) == ranks ? 0 : 1;
}
static int steps(int ranks)
{
    return tutti__log2(half_world(ranks));
}
static double doubling_cost_all_reduce(const tutti_cost_query *q)
{
    double extra = extra_steps(q->ranks),
           add = tutti__coll_cost_sum(q, q->bytes, q->bytes + fmin(q->bytes, TUTTI_FOLD_ROOM));
    tutti_cost_query near = *q; /* the first steps stay within a machine */
    near.link = TUTTI_LINK_WITHIN;
    double inside = q->share > 1 ? log2(q->share) : 0;
    return (steps(q->ranks) - inside) * (tutti__cost_exchange(q, q->bytes) + add) +
           inside * (tutti__cost_exchange(&near, q->bytes) + add) +
           extra * (2 * tutti__cost_message(q, q->bytes) + add);
}
static double doubling_cost_barrier(const tutti_cost_query *q)
{
    return tutti__log2(q->ranks) * tutti__cost_exchange(q, 0);
}

const tutti_coll tutti_coll_doubling = {
    .name = "doubling",
    .doc = "recursive doubling: everything, at distances 1, 2, 4, ...",
    .all_cross = true,
    .in_parts = true,
    .on =
        {
            [TUTTI_BARRIER] = {doubling_barrier, doubling_cost_barrier, "log p a"},
            [TUTTI_ALL_REDUCE] = {doubling_all_reduce, doubling_cost_all_reduce,
                                  "log q (a + Mb + Mg), q: the power of two up to p; and 2(a + Mb) "
                                  "+ Mg where q < p"},
        },
};
