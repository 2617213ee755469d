/* naive.c: everybody sends everything to everybody. (p - 1) M bytes leave each rank; one step. What
 * every other algorithm is checked against: results are folded in the order of ranks. */
#include "comm/coll/coll.h"

#include "base/recycle.h"
#include <stdlib.h>

static tutti_status tables(tutti_collective *c, struct iovec **ret_out, struct iovec **ret_in)
{
    struct iovec *both = tutti__recycle_zeros((size_t)c->size * 2, sizeof *both);
    if (!both)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for messages to %d ranks", c->size);
    *ret_out = both;
    *ret_in = both + c->size;
    return TUTTI_OK;
}

static tutti_status naive_all_reduce(tutti_collective *c)
{
    struct iovec *out, *in;
    size_t bytes = (size_t)c->count * c->element;
    void *scratch;
    TUTTI_TRY(tutti__coll_scratch(c, bytes * (size_t)c->size + 1, &scratch));
    TUTTI_TRY(tables(c, &out, &in));
    for (int r = 0; r < c->size; r++) {
        out[r] = (struct iovec){(void *)(uintptr_t)c->in, bytes};
        in[r] = (struct iovec){(char *)scratch + (size_t)r * bytes, bytes};
    }
    tutti_status status = tutti__coll_exchange_all(c, out, in);
    if (status == TUTTI_OK) {
        const void **inputs = (const void **)(void *)out;
        for (int r = 0; r < c->size; r++)
            inputs[r] = r == c->rank ? c->in : (char *)scratch + (size_t)r * bytes;
        c->fold(c->out, inputs, c->size, c->count);
        tutti__fold_finish(c->dtype, c->reduction, c->out, c->count, c->size);
    }
    tutti__recycle_free(out);
    return status;
}

static tutti_status naive_all_gather(tutti_collective *c)
{
    struct iovec *out, *in;
    TUTTI_TRY(tables(c, &out, &in));
    size_t mine = (size_t)(c->counts ? c->counts[c->rank] : c->count) * c->element;
    char *at = c->out;
    for (int r = 0; r < c->size; r++) {
        size_t bytes = (size_t)(c->counts ? c->counts[r] : c->count) * c->element;
        out[r] = (struct iovec){(void *)(uintptr_t)c->in, mine};
        in[r] = (struct iovec){at, bytes};
        if (r == c->rank)
            tutti__coll_copy(c, at, c->in, mine);
        at += bytes;
    }
    tutti_status status = tutti__coll_exchange_all(c, out, in);
    tutti__recycle_free(out);
    return status;
}

static tutti_status all_to_all(tutti_collective *c)
{
    struct iovec *out, *in;
    TUTTI_TRY(tables(c, &out, &in));
    size_t bytes = (size_t)c->count * c->element;
    for (int r = 0; r < c->size; r++) {
        out[r] = (struct iovec){(char *)(uintptr_t)c->in + (size_t)r * bytes, bytes};
        in[r] = (struct iovec){(char *)c->out + (size_t)r * bytes, bytes};
    }
    tutti__coll_copy(c, in[c->rank].iov_base, out[c->rank].iov_base, bytes);
    tutti_status status = tutti__coll_exchange_all(c, out, in);
    tutti__recycle_free(out);
    return status;
}

static tutti_status naive_reduce_scatter(tutti_collective *c)
{
    struct iovec *out, *in;
    size_t bytes = (size_t)c->count * c->element;
    void *scratch;
    TUTTI_TRY(tutti__coll_scratch(c, bytes * (size_t)c->size + 1, &scratch));
    TUTTI_TRY(tables(c, &out, &in));
    for (int r = 0; r < c->size; r++) {
        out[r] = (struct iovec){(char *)(uintptr_t)c->in + (size_t)r * bytes, bytes};
        in[r] = (struct iovec){(char *)scratch + (size_t)r * bytes, bytes};
    }
    tutti_status status = tutti__coll_exchange_all(c, out, in);
    if (status == TUTTI_OK) {
        const void *own = out[c->rank].iov_base, **inputs = (const void **)(void *)out;
        for (int r = 0; r < c->size; r++)
            inputs[r] = r == c->rank ? own : (char *)scratch + (size_t)r * bytes;
        c->fold(c->out, inputs, c->size, c->count);
        tutti__fold_finish(c->dtype, c->reduction, c->out, c->count, c->size);
    }
    tutti__recycle_free(out);
    return status;
}

static tutti_status naive_barrier(tutti_collective *c)
{
    struct iovec *out, *in;
    TUTTI_TRY(tables(c, &out, &in));
    for (int r = 0; r < c->size; r++)
        out[r].iov_base = in[r].iov_base = out;
    tutti_status status = tutti__coll_exchange_all(c, out, in);
    tutti__recycle_free(out);
    return status;
}

static double cost_gather(const tutti_cost_query *q)
{
    double touched = q->bytes * q->ranks;
    return tutti__coll_cost_exchange_many(q, q->bytes, touched) + tutti__coll_cost_own(q);
}
static double cost_all_to_all(const tutti_cost_query *q)
{
    double touched = 2 * q->bytes * q->ranks;
    return tutti__coll_cost_exchange_many(q, q->bytes, touched) + tutti__coll_cost_own(q);
}
/* What is given goes to the first of the others out of memory, to further ones out of the caches,
 * which several lanes leave no room in. Then what came is folded in one pass, of which two sources
 * are those of y += x. */
static double cost_folded(const tutti_cost_query *q)
{
    double touched = q->ranks * q->bytes, more = q->ranks - 2;
    double first = tutti__coll_cost_exchange_block(q, q->bytes, touched);
    double again = tutti__coll_cost_exchange_again(q, q->bytes, touched);
    return first + more * (q->quiet ? first : again) +
           tutti__coll_cost_add_in(q, q->bytes, touched) +
           more * tutti__coll_cost_source(q, q->bytes, touched);
}
/* What came in is folded into other memory, in one pass. */
static double cost_scattered(const tutti_cost_query *q)
{
    double block = q->bytes / q->ranks, touched = 2 * q->bytes;
    return tutti__coll_cost_exchange_many(q, block, touched) +
           (q->ranks - 1) * tutti__coll_cost_source(q, block, touched) +
           tutti__coll_cost_move(q, block);
}
static double naive_cost_barrier(const tutti_cost_query *q)
{
    return (q->ranks - 1) * tutti__cost_exchange(q, 0);
}

const tutti_coll tutti_coll_naive = {
    .name = "naive",
    .doc = "everybody sends to everybody",
    .all_cross = true,
    .on =
        {
            [TUTTI_BARRIER] = {naive_barrier, naive_cost_barrier, "(p-1)a"},
            [TUTTI_ALL_REDUCE] = {naive_all_reduce, cost_folded, "(p-1)(a + Mb + Mg)"},
            [TUTTI_REDUCE_SCATTER] = {naive_reduce_scatter, cost_scattered,
                                      "(p-1)(a + M/p b + M/p (z-m)) + M/p m"},
            [TUTTI_ALL_GATHER] = {naive_all_gather, cost_gather, "(p-1)(a + Mb) + Mm"},
            [TUTTI_ALL_TO_ALL] = {all_to_all, cost_all_to_all, "(p-1)(a + Mb) + Mm"},
        },
};
