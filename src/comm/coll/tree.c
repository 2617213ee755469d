/* tree.c: a binomial tree. In step k ranks whose distance to the root is an odd multiple of 2^k
 * give to the rank 2^k below; a broadcast goes the same way back. log2 p steps each. */
#include "comm/coll/coll.h"

static int real(const tutti_collective *c, int root, int place)
{
    return (place + root) % c->size;
}

static int place_of(const tutti_collective *c, int root)
{
    return (c->rank - root + c->size) % c->size;
}

static tutti_status broadcast_from(tutti_collective *c, int root, void *data, size_t bytes)
{
    int place = place_of(c, root), step = 1 << tutti__log2(c->size);
    for (; step > 0; step /= 2) {
        if (place % (2 * step) == step)
            TUTTI_TRY(tutti__coll_recv(c, real(c, root, place - step), data, bytes));
        else if (place % (2 * step) == 0 && place + step < c->size)
            TUTTI_TRY(tutti__coll_send(c, real(c, root, place + step), data, bytes));
    }
    return TUTTI_OK;
}

/* The fold of all is in `sum` on the root afterwards; others above leaves use it on the way. */
static tutti_status reduce_to(tutti_collective *c, int root, void *sum, void *room)
{
    int place = place_of(c, root);
    const void *own = c->in;
    for (int step = 1; step < c->size; step *= 2) {
        int up = real(c, root, place - step + c->size), down = real(c, root, place + step);
        if (place % (2 * step) == step)
            return tutti__coll_exchange_fold(c, up, own, c->count, up, NULL, NULL, 0, true, room);
        if (place + step >= c->size)
            continue;
        TUTTI_TRY(
            tutti__coll_exchange_fold(c, down, NULL, 0, down, own, sum, c->count, true, room));
        own = sum;
    }
    return TUTTI_OK;
}

static tutti_status tree_broadcast(tutti_collective *c)
{
    return broadcast_from(c, c->root, c->out, (size_t)c->count * c->element);
}

static tutti_status tree_reduce(tutti_collective *c)
{
    size_t bytes = (size_t)c->count * c->element;
    bool root = c->rank == c->root;
    void *scratch;
    TUTTI_TRY(tutti__coll_scratch(c, bytes + TUTTI_FOLD_ROOM, &scratch));
    char *sum = root ? c->out : scratch;
    TUTTI_TRY(reduce_to(c, c->root, sum, (char *)scratch + bytes));
    if (root)
        tutti__fold_finish(c->dtype, c->reduction, sum, c->count, c->size);
    return TUTTI_OK;
}

static tutti_status tree_all_reduce(tutti_collective *c)
{
    size_t bytes = (size_t)c->count * c->element;
    void *room;
    TUTTI_TRY(tutti__coll_scratch(c, TUTTI_FOLD_ROOM, &room));
    TUTTI_TRY(reduce_to(c, 0, c->out, room));
    if (c->rank == 0)
        tutti__fold_finish(c->dtype, c->reduction, c->out, c->count, c->size);
    return broadcast_from(c, 0, c->out, bytes);
}

static tutti_status tree_barrier(tutti_collective *c)
{
    char nothing = 0;
    int place = c->rank;
    for (int step = 1; step < c->size; step *= 2) {
        if (place % (2 * step) == step) {
            TUTTI_TRY(tutti__coll_send(c, place - step, &nothing, 0));
            break;
        }
        if (place + step < c->size)
            TUTTI_TRY(tutti__coll_recv(c, place + step, &nothing, 0));
    }
    return broadcast_from(c, 0, &nothing, 0);
}

static double tree_cost_broadcast(const tutti_cost_query *q)
{
    return tutti__log2(q->ranks) * tutti__cost_message(q, q->bytes);
}
/* The first sum goes from what is given into what is got; the others are added to that. */
static double cost_reduce(const tutti_cost_query *q)
{
    return tutti__coll_cost_folded_into(q, q->bytes) +
           (tutti__log2(q->ranks) - 1) * tutti__coll_cost_folded(q, q->bytes);
}
static double tree_cost_all_reduce(const tutti_cost_query *q)
{
    return tutti__log2(q->ranks) * tutti__coll_cost_folded(q, q->bytes) + tree_cost_broadcast(q);
}
static double tree_cost_barrier(const tutti_cost_query *q)
{
    return 2 * tutti__log2(q->ranks) * tutti__cost_message(q, 0);
}

const tutti_coll tutti_coll_tree = {
    .name = "tree",
    .doc = "a binomial tree, up and down",
    .few = 0.5, /* half of the ranks are at work in the first step, two in the last */
    .on =
        {
            [TUTTI_BARRIER] = {tree_barrier, tree_cost_barrier, "2 log p a"},
            [TUTTI_BROADCAST] = {tree_broadcast, tree_cost_broadcast, "log p (a + Mb)"},
            [TUTTI_REDUCE] = {tree_reduce, cost_reduce, "log p (a + Mb + Mg)"},
            [TUTTI_ALL_REDUCE] = {tree_all_reduce, tree_cost_all_reduce,
                                  "2 log p (a + Mb) + log p Mg"},
        },
};
