/* ring.c: rank r gives to r + 1 and takes from r - 1. The message is cut into p blocks; after p - 1
 * steps each rank has one block of the sum, after p - 1 more everybody has all. 2 (p - 1) / p M
 * bytes leave each rank, which no algorithm over messages can better. */
#include "comm/coll/coll.h"

#include <math.h>

enum { CHAIN = 128 << 10 }; /* bytes that a broadcast hands on at a time, if to anybody */

static int around(const tutti_collective *c, int rank)
{
    return ((rank % c->size) + c->size) % c->size;
}

static char *at(const tutti_collective *c, void *base, int64_t element)
{
    return (char *)base + (size_t)element * c->element;
}

/* Each rank ends with block `rank` of the fold in its output; of the others only those on their way
 * were written there. */
static tutti_status scatter_sums(tutti_collective *c, char *room)
{
    int64_t count = c->count;
    const char *in = c->in;
    char *out = c->out;
    for (int step = 1; step < c->size; step++) {
        int give = around(c, c->rank - step), take = around(c, c->rank - step - 1);
        int64_t give_low = tutti__coll_cut(count, c->size, give);
        int64_t give_size = tutti__coll_cut(count, c->size, give + 1) - give_low;
        int64_t low = tutti__coll_cut(count, c->size, take);
        int64_t size = tutti__coll_cut(count, c->size, take + 1) - low;
        const char *given = (step == 1 ? in : out) + (size_t)give_low * c->element;
        TUTTI_TRY(tutti__coll_exchange_fold(c, around(c, c->rank + 1), given, give_size,
                                            around(c, c->rank - 1), in + (size_t)low * c->element,
                                            at(c, out, low), size, false, room));
    }
    return TUTTI_OK;
}

/* Block `rank` of `data` is right on each rank; afterwards all are. `counts` are the blocks' sizes,
 * or NULL for an even cut of `count`. */
static tutti_status gather_blocks(tutti_collective *c, char *data, int64_t count,
                                  const int64_t *counts)
{
    int64_t give_low = 0;
    for (int i = 0; counts && i < c->rank; i++)
        give_low += counts[i];
    for (int step = 0; step + 1 < c->size; step++) {
        int give = around(c, c->rank - step), take = around(c, c->rank - step - 1);
        int64_t give_size, size, low;
        if (counts) {
            give_size = counts[give], size = counts[take];
            low = (take < give ? give_low : count) - size;
        } else {
            give_low = tutti__coll_cut(count, c->size, give);
            give_size = tutti__coll_cut(count, c->size, give + 1) - give_low;
            low = tutti__coll_cut(count, c->size, take);
            size = tutti__coll_cut(count, c->size, take + 1) - low;
        }
        TUTTI_TRY(tutti__coll_exchange(c, around(c, c->rank + 1), at(c, data, give_low),
                                       (size_t)give_size * c->element, around(c, c->rank - 1),
                                       at(c, data, low), (size_t)size * c->element));
        give_low = low;
    }
    return TUTTI_OK;
}

static tutti_status ring_all_reduce(tutti_collective *c)
{
    void *room;
    int64_t low = tutti__coll_cut(c->count, c->size, c->rank);
    int64_t high = tutti__coll_cut(c->count, c->size, c->rank + 1);
    TUTTI_TRY(tutti__coll_scratch(c, TUTTI_FOLD_ROOM, &room));
    TUTTI_TRY(scatter_sums(c, room));
    tutti__fold_finish(c->dtype, c->reduction, at(c, c->out, low), high - low, c->size);
    return gather_blocks(c, c->out, c->count, NULL);
}

/* Sums on their way round are in two blocks of scratch memory in turn; the last is the result. */
static tutti_status ring_reduce_scatter(tutti_collective *c)
{
    void *scratch;
    size_t block = (size_t)c->count * c->element;
    TUTTI_TRY(tutti__coll_scratch(c, 2 * block + TUTTI_FOLD_ROOM, &scratch));
    char *room = (char *)scratch + 2 * block;
    const char *in = c->in;
    for (int step = 1; step < c->size; step++) {
        int give = around(c, c->rank - step), take = around(c, c->rank - step - 1);
        char *target = step + 1 == c->size ? c->out : (char *)scratch + (size_t)(step & 1) * block;
        const char *given = step == 1 ? in + (size_t)give * block
                                      : (char *)scratch + (size_t)((step - 1) & 1) * block;
        TUTTI_TRY(tutti__coll_exchange_fold(c, around(c, c->rank + 1), given, c->count,
                                            around(c, c->rank - 1), in + (size_t)take * block,
                                            target, c->count, false, room));
    }
    tutti__fold_finish(c->dtype, c->reduction, c->out, c->count, c->size);
    return TUTTI_OK;
}

static tutti_status ring_all_gather(tutti_collective *c)
{
    int64_t start = 0, total = 0, mine = c->counts ? c->counts[c->rank] : c->count;
    for (int i = 0; i < c->size; i++) {
        start = i == c->rank ? total : start;
        total += c->counts ? c->counts[i] : c->count;
    }
    char *own = at(c, c->out, start);
    tutti__coll_copy(c, own, c->in, (size_t)mine * c->element);
    return gather_blocks(c, c->out, total, c->counts);
}

/* A chain from the root: while one piece goes on, the next comes in. */
static tutti_status ring_broadcast(tutti_collective *c)
{
    size_t bytes = (size_t)c->count * c->element, had = 0;
    char *data = c->out;
    int place = around(c, c->rank - c->root), next = around(c, c->rank + 1);
    int before = around(c, c->rank - 1);
    bool last = place == c->size - 1;
    size_t piece = c->size > 2 ? CHAIN : bytes;
    for (size_t start = 0; start < bytes || had; start += piece) {
        size_t size = start >= bytes ? 0 : bytes - start < piece ? bytes - start : piece;
        if (place == 0) {
            if (size)
                TUTTI_TRY(tutti__coll_send(c, next, data + start, size));
            continue;
        }
        if (had && size && !last)
            TUTTI_TRY(
                tutti__coll_exchange(c, next, data + start - had, had, before, data + start, size));
        else if (size)
            TUTTI_TRY(tutti__coll_recv(c, before, data + start, size));
        else if (!last)
            TUTTI_TRY(tutti__coll_send(c, next, data + bytes - had, had));
        had = size;
    }
    return TUTTI_OK;
}

/* What a step gives came in the one before and has to be there; where exchanges were measured, many
 * followed each other, and took less than alpha from one to the next. */
static double cost_dependence(const tutti_cost_query *q)
{
    double alpha = q->cost->link[q->link].alpha, turn = q->cost->link[q->link].turn;
    return turn > 0 ? (q->ranks - 2) * fmax(alpha - turn, 0) : 0;
}
static double cost_gather(const tutti_cost_query *q)
{
    double touched = q->bytes * q->ranks;
    return (q->ranks - 1) * tutti__coll_cost_exchange_block(q, q->bytes, touched) +
           cost_dependence(q) + tutti__coll_cost_own(q);
}
/* Sums on their way go into other memory than what was given. */
static double cost_scatter(const tutti_cost_query *q)
{
    double block = q->bytes / q->ranks;
    double touched = q->bytes + block + fmin(block, TUTTI_FOLD_ROOM);
    double sum =
        fmax(tutti__coll_cost_sum(q, block, touched) + tutti__coll_cost_elsewhere(q, block),
             tutti__cost_fold(q, block) + tutti__coll_cost_source(q, block, touched));
    return (q->ranks - 1) * (tutti__coll_cost_exchange_block(q, block, touched) + sum) +
           cost_dependence(q);
}
static double ring_cost_all_reduce(const tutti_cost_query *q)
{
    double block = q->bytes / q->ranks;
    return (q->ranks - 1) *
               (2 * tutti__coll_cost_blocks(q, block, 1) + tutti__coll_cost_add_block(q, block)) +
           2 * cost_dependence(q);
}
/* The first piece goes from rank to rank; after it each sends on what has just come, and is in its
 * caches, while the next comes into memory. Two ranks: the root is ahead by what the link holds;
 * further pieces are put in one by one, as they are taken out. */
static double ring_cost_broadcast(const tutti_cost_query *q)
{
    double piece = q->bytes < CHAIN ? q->bytes : CHAIN, pieces = q->bytes / CHAIN;
    pieces = pieces < 1 ? 1 : pieces;
    if (q->ranks == 2)
        return tutti__cost_message(q, q->bytes);
    return (q->ranks - 1) * tutti__cost_message(q, piece) +
           (pieces - 1) * tutti__coll_cost_exchange_again(q, piece, q->bytes);
}

const tutti_coll tutti_coll_ring = {
    .name = "ring",
    .doc = "blocks go round a ring",
    .in_parts = true,
    .on =
        {
            [TUTTI_BROADCAST] = {ring_broadcast, ring_cost_broadcast,
                                 "(M/C + p-2)(a + Cb), C = min(M, 128 KiB); p = 2: a + Mb"},
            [TUTTI_ALL_REDUCE] = {ring_all_reduce, ring_cost_all_reduce,
                                  "2(p-1)a + 2(p-1)/p Mb + (p-1)/p Mg"},
            [TUTTI_REDUCE_SCATTER] = {ring_reduce_scatter, cost_scatter,
                                      "(p-1)a + (p-1)/p Mb + (p-1)/p Mz"},
            [TUTTI_ALL_GATHER] = {ring_all_gather, cost_gather, "(p-1)(a + Mb) + Mm"},
        },
};
