/* halving.c: recursive halving, then doubling. In step k ranks that differ in one bit exchange
 * halves of what is left and fold; then the same way back, exchanging results. 2 log2 p steps and
 * 2 (p - 1) / p M bytes for powers of two; ranks beyond give theirs to a partner first. */
#include "comm/coll/coll.h"

enum { STEPS = 32 };

typedef struct halving {
    tutti_collective *call;
    int world, extra, place;
    int64_t low[STEPS], high[STEPS]; /* elements that this rank holds before step k */
} halving;

static int peer_of(const halving *h, int place)
{
    return place < h->extra ? place * 2 : place + h->extra;
}

static char *at(const tutti_collective *c, int64_t element)
{
    return (char *)c->out + (size_t)element * c->element;
}

static tutti_status halve(halving *h, int steps, char *room)
{
    tutti_collective *c = h->call;
    for (int k = 0; k < steps; k++) {
        int other = h->place ^ (h->world >> (k + 1)), peer = peer_of(h, other);
        int64_t low = h->low[k], high = h->high[k], middle = low + (high - low) / 2;
        bool lower = h->place < other;
        int64_t keep_low = lower ? low : middle, keep_high = lower ? middle : high;
        int64_t give_low = lower ? middle : low, give_high = lower ? high : middle;
        TUTTI_TRY(tutti__coll_exchange_fold(c, peer, at(c, give_low), give_high - give_low, peer,
                                            at(c, keep_low), at(c, keep_low), keep_high - keep_low,
                                            lower, room));
        h->low[k + 1] = keep_low;
        h->high[k + 1] = keep_high;
    }
    return TUTTI_OK;
}

static tutti_status widen(halving *h, int steps)
{
    tutti_collective *c = h->call;
    for (int k = steps - 1; k >= 0; k--) {
        int other = h->place ^ (h->world >> (k + 1)), peer = peer_of(h, other);
        int64_t middle = h->low[k] + (h->high[k] - h->low[k]) / 2;
        bool lower = h->place < other;
        int64_t take_low = lower ? middle : h->low[k], take_high = lower ? h->high[k] : middle;
        TUTTI_TRY(tutti__coll_exchange(
            c, peer, at(c, h->low[k + 1]), (size_t)(h->high[k + 1] - h->low[k + 1]) * c->element,
            peer, at(c, take_low), (size_t)(take_high - take_low) * c->element));
    }
    return TUTTI_OK;
}

static tutti_status halving_all_reduce(tutti_collective *c)
{
    size_t bytes = (size_t)c->count * c->element;
    int steps = tutti__log2(c->size + 1) - 1;
    halving h = {.call = c, .world = 1 << steps, .high[0] = c->count};
    h.extra = c->size - h.world;
    bool paired = c->rank < 2 * h.extra;
    int partner = c->rank ^ 1;
    void *room;
    TUTTI_TRY(tutti__coll_scratch(c, TUTTI_FOLD_ROOM, &room));
    tutti__coll_copy(c, c->out, c->in, bytes);
    if (paired && c->rank % 2 == 1) {
        TUTTI_TRY(tutti__coll_exchange_fold(c, partner, c->out, c->count, partner, NULL, NULL, 0,
                                            true, room));
        return tutti__coll_recv(c, partner, c->out, bytes);
    }
    if (paired) {
        TUTTI_TRY(tutti__coll_exchange_fold(c, partner, NULL, 0, partner, c->out, c->out, c->count,
                                            true, room));
    }
    h.place = paired ? c->rank / 2 : c->rank - h.extra;
    TUTTI_TRY(halve(&h, steps, room));
    tutti__fold_finish(c->dtype, c->reduction, at(c, h.low[steps]), h.high[steps] - h.low[steps],
                       c->size);
    TUTTI_TRY(widen(&h, steps));
    return paired ? tutti__coll_send(c, partner, c->out, bytes) : TUTTI_OK;
}

static double halving_cost_all_reduce(const tutti_cost_query *q)
{
    int steps = tutti__log2(q->ranks + 1) - 1;
    double time = 0, bytes = q->bytes;
    for (int k = 0; k < steps; k++) {
        bytes /= 2;
        time += 2 * tutti__coll_cost_blocks(q, bytes, 1) + tutti__coll_cost_add_block(q, bytes);
    }
    if (1 << steps != q->ranks)
        time += 2 * tutti__cost_message(q, q->bytes) + tutti__cost_add(q, q->bytes);
    return time;
}

const tutti_coll tutti_coll_halving = {
    .name = "halving",
    .doc = "recursive halving, then doubling",
    .all_cross = true,
    .in_parts = true,
    .on =
        {
            [TUTTI_ALL_REDUCE] = {halving_all_reduce, halving_cost_all_reduce,
                                  "2 log q a + 2(q-1)/q Mb + (q-1)/q Mg, q: the power of two up "
                                  "to p; and 2(a + Mb) + Mg where q < p"},
        },
};
