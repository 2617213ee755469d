/* central.c: one rank, the manager (the root, else rank 0), collects and hands out. An all-reduce
 * moves 2 (p - 1) M bytes through it: in p - 1 messages of M, out as many. */
#include "comm/coll/coll.h"

#include <math.h>

static tutti_status broadcast_from(tutti_collective *c, int root, void *data, size_t bytes)
{
    if (c->rank != root)
        return tutti__coll_recv(c, root, data, bytes);
    for (int i = 1; i < c->size; i++)
        TUTTI_TRY(tutti__coll_send(c, (root + i) % c->size, data, bytes));
    return TUTTI_OK;
}

/* Folded as they come by rank, the root's own first. */
static tutti_status reduce_to(tutti_collective *c, int root)
{
    void *room;
    TUTTI_TRY(tutti__coll_scratch(c, TUTTI_FOLD_ROOM, &room));
    if (c->rank != root)
        return tutti__coll_exchange_fold(c, root, c->in, c->count, root, NULL, NULL, 0, true, room);
    const void *own = c->in;
    for (int r = 0; r < c->size; r++) {
        if (r == root)
            continue;
        TUTTI_TRY(tutti__coll_exchange_fold(c, r, NULL, 0, r, own, c->out, c->count, true, room));
        own = c->out;
    }
    tutti__fold_finish(c->dtype, c->reduction, c->out, c->count, c->size);
    return TUTTI_OK;
}

static tutti_status central_broadcast(tutti_collective *c)
{
    return broadcast_from(c, c->root, c->out, (size_t)c->count * c->element);
}

static tutti_status central_reduce(tutti_collective *c)
{
    return reduce_to(c, c->root);
}

static tutti_status central_all_reduce(tutti_collective *c)
{
    TUTTI_TRY(reduce_to(c, 0));
    return broadcast_from(c, 0, c->out, (size_t)c->count * c->element);
}

static tutti_status central_gather(tutti_collective *c)
{
    size_t bytes = (size_t)c->count * c->element;
    if (c->rank != c->root)
        return tutti__coll_send(c, c->root, c->in, bytes);
    /* Its own first: the others are still sending. */
    tutti__coll_copy(c, (char *)c->out + (size_t)c->rank * bytes, c->in, bytes);
    for (int r = 0; r < c->size; r++)
        if (r != c->rank)
            TUTTI_TRY(tutti__coll_recv(c, r, (char *)c->out + (size_t)r * bytes, bytes));
    return TUTTI_OK;
}

static tutti_status scatter(tutti_collective *c)
{
    size_t bytes = (size_t)c->count * c->element;
    if (c->rank != c->root)
        return tutti__coll_recv(c, c->root, c->out, bytes);
    for (int r = 0; r < c->size; r++)
        if (r != c->rank)
            TUTTI_TRY(tutti__coll_send(c, r, (const char *)c->in + (size_t)r * bytes, bytes));
    /* Its own last: the others are still receiving. */
    tutti__coll_copy(c, c->out, (const char *)c->in + (size_t)c->rank * bytes, bytes);
    return TUTTI_OK;
}

static tutti_status central_barrier(tutti_collective *c)
{
    char nothing = 0;
    if (c->rank != 0)
        return tutti__coll_exchange(c, 0, &nothing, 0, 0, &nothing, 0);
    for (int r = 1; r < c->size; r++)
        TUTTI_TRY(tutti__coll_recv(c, r, &nothing, 0));
    return broadcast_from(c, 0, &nothing, 0);
}

/* Of alpha half is the sender's, half the receiver's. */
static double half_alpha(const tutti_cost_query *q)
{
    return q->cost->link[q->link].alpha / 2;
}
/* All but the last take theirs while the manager sends to the next. */
static double cost_one_way(const tutti_cost_query *q)
{
    double message = tutti__cost_message(q, q->bytes), put = tutti__coll_cost_put(q, q->bytes);
    return (q->ranks - 2) * fmin(put + half_alpha(q), message) + message;
}
/* All but the first have sent theirs while the manager is at another's. */
static double cost_more(const tutti_cost_query *q)
{
    return (q->ranks - 2) * (tutti__coll_cost_folded(q, q->bytes) -
                             tutti__cost_message(q, q->bytes) + tutti__coll_cost_take(q, q->bytes));
}
/* The first sum goes from what is given into what is got; the others are added to that. */
static double cost_reduce(const tutti_cost_query *q)
{
    return tutti__coll_cost_folded_into(q, q->bytes) + cost_more(q);
}
/* A block for each of the others. All of them and one more, the manager's own, pass through its
 * caches; through the last one, which ranks share, two blocks of each rank, where messages of two
 * blocks were measured to touch as much. */
static double cost_block(const tutti_cost_query *q)
{
    return tutti__coll_cost_message_block(q, q->bytes, q->bytes * fmin(q->ranks + 1, 4));
}
/* While the manager copies its own block, senders are at work, until their links are full; what it
 * copies before anything has come is no loss. All but the first send while the manager is at
 * another's: of a short message that saves three quarters of what one costs besides its bytes, of
 * a long one all that is not taking them out. */
static double cost_gather(const tutti_cost_query *q)
{
    enum { LONG = 64 << 10 };
    double message = tutti__cost_message(q, q->bytes), take = tutti__coll_cost_take(q, q->bytes);
    double alpha = 2 * half_alpha(q), late = fmax(tutti__coll_cost_own(q) - alpha, 0);
    double saved = fmin(message - take, 0.75 * alpha);
    if (q->bytes >= LONG)
        saved = fmax(saved, message - take - alpha);
    return fmax((q->ranks - 1) * cost_block(q) - (q->ranks - 2) * saved,
                late + fmin(alpha + take, message) + (q->ranks - 2) * take);
}
/* All but the last take theirs while the manager sends to the next; it copies its own block last,
 * while the last of the others takes his out of the link. */
static double cost_scatter(const tutti_cost_query *q)
{
    double block = cost_block(q), put = tutti__coll_cost_put(q, q->bytes), others = q->ranks - 1;
    double saved = tutti__cost_message(q, q->bytes) - put;
    return fmax(others * block - (others - 1) * fmax(saved - half_alpha(q), 0),
                others * (block - saved) + tutti__coll_cost_move(q, q->bytes));
}
static double central_cost_all_reduce(const tutti_cost_query *q)
{
    return tutti__coll_cost_folded(q, q->bytes) + cost_more(q) + cost_one_way(q);
}
static double central_cost_barrier(const tutti_cost_query *q)
{
    return 2 * (q->ranks - 1) * tutti__cost_message(q, 0);
}

const tutti_coll tutti_coll_central = {
    .name = "central",
    .doc = "one rank collects and hands out (parameter server)",
    .few = 1,
    .on =
        {
            [TUTTI_BARRIER] = {central_barrier, central_cost_barrier, "2(p-1)a"},
            [TUTTI_BROADCAST] = {central_broadcast, cost_one_way, "(p-1)(a + Mb)"},
            [TUTTI_REDUCE] = {central_reduce, cost_reduce, "(p-1)(a + Mb + Mg)"},
            [TUTTI_ALL_REDUCE] = {central_all_reduce, central_cost_all_reduce,
                                  "2(p-1)(a + Mb) + (p-1)Mg"},
            [TUTTI_GATHER] = {central_gather, cost_gather,
                              "(p-1)(a + Mb) + max(Mm - a, 0), with Mt for Mb where links hold it"},
            [TUTTI_SCATTER] = {scatter, cost_scatter,
                               "(p-1)(a + Mb) + Mm, with Mu for Mb where links hold it"},
        },
};
