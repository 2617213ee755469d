/* fixed.c: a sum over V shards along one binary tree, with the same bits for every number of ranks.
 *
 * The node [a, b) is the fold of [a, m) and [m, b), m = (a + b) / 2, down to single shards. Rank r
 * holds shards [r V / p, (r + 1) V / p); it folds every node that lies wholly in there and has a
 * parent that does not (at most 2 log V of them), and gives part c of each to rank c, which
 * finishes the tree for its part and gives that to everybody. (k + 1) (p - 1) / p M bytes leave a
 * rank of k nodes. A rank that has one node, and has it already, gives it as it lies in its input:
 * nothing is copied. */
#include "base/recycle.h"
#include "base/shards.h"
#include "comm/coll/coll.h"
#include <stdlib.h>

typedef struct fixed {
    tutti_collective *call;
    int shards;
    int64_t low, count; /* the part of the message at work, in elements */
    char *temporary;    /* two for each level of the tree */
    char **nodes;       /* [size]: what each rank gave for this part, node after node */
} fixed;

static int first_shard(const fixed *f, int rank)
{
    return (int)((int64_t)rank * f->shards / f->call->size);
}

static size_t part_bytes(const fixed *f)
{
    return (size_t)f->count * f->call->element;
}

static char *temporary(const fixed *f, int level, int side)
{
    return f->temporary + (size_t)(level * 2 + side) * part_bytes(f);
}

/* A node that is this rank's own, from its shards: in `into`, or the shard itself. */
static const void *fold_own(const fixed *f, int a, int b, int level, char *into)
{
    const tutti_collective *c = f->call;
    if (b - a == 1) {
        int64_t element = (int64_t)(a - first_shard(f, c->rank)) * c->count + f->low;
        return (const char *)c->in + (size_t)element * c->element;
    }
    int middle = (a + b) / 2;
    const void *left = fold_own(f, a, middle, level + 1, temporary(f, level, 0));
    const void *right = fold_own(f, middle, b, level + 1, temporary(f, level, 1));
    tutti__coll_fold(c, into, left, right, f->count);
    return into;
}

/* A node that the caller folded. */
static const void *given_node(const fixed *f, int low, int high, int a)
{
    int64_t before = tutti__shard_nodes(low, high, 0, f->shards, a);
    return (const char *)f->call->in +
           (size_t)(before * f->call->count + f->low) * f->call->element;
}

/* All nodes of this rank that others need, into `to`. */
static char *write_nodes(const fixed *f, int a, int b, char *to)
{
    int low = first_shard(f, f->call->rank), high = first_shard(f, f->call->rank + 1);
    if (b <= low || a >= high)
        return to;
    if (low <= a && b <= high) {
        tutti__coll_copy(f->call, to,
                         f->call->folded ? given_node(f, low, high, a) : fold_own(f, a, b, 0, to),
                         part_bytes(f));
        return to + part_bytes(f);
    }
    to = write_nodes(f, a, (a + b) / 2, to);
    return write_nodes(f, (a + b) / 2, b, to);
}

/* Any node, from what all ranks gave: in `into`, or as it was given. */
static const void *fold_all(const fixed *f, int a, int b, int level, char *into)
{
    int rank = 0;
    while (first_shard(f, rank + 1) <= a)
        rank++;
    int low = first_shard(f, rank), high = first_shard(f, rank + 1);
    if (b <= high)
        return f->nodes[rank] +
               (size_t)tutti__shard_nodes(low, high, 0, f->shards, a) * part_bytes(f);
    int middle = (a + b) / 2;
    const void *left = fold_all(f, a, middle, level + 1, temporary(f, level, 0));
    const void *right = fold_all(f, middle, b, level + 1, temporary(f, level, 1));
    tutti__coll_fold(f->call, into, left, right, f->count);
    return into;
}

static void set_part(fixed *f, int part)
{
    f->low = tutti__coll_cut(f->call->count, f->call->size, part);
    f->count = tutti__coll_cut(f->call->count, f->call->size, part + 1) - f->low;
}

static int nodes_of(const fixed *f, int rank)
{
    return tutti__shard_nodes(first_shard(f, rank), first_shard(f, rank + 1), 0, f->shards,
                              f->shards);
}

/* Whether this rank's input is the one node that it gives. */
static bool gives_input(const fixed *f)
{
    const tutti_collective *c = f->call;
    int shards = first_shard(f, c->rank + 1) - first_shard(f, c->rank);
    return nodes_of(f, c->rank) == 1 && (c->folded || shards == 1);
}

/* Gives every rank its part of this rank's nodes and gets the own part of everybody's. */
static tutti_status trade(fixed *f, char *memory, struct iovec *out, struct iovec *in)
{
    tutti_collective *c = f->call;
    char *to = memory;
    for (int part = 0; part < c->size; part++) {
        set_part(f, part);
        out[part] = (struct iovec){to, (size_t)nodes_of(f, c->rank) * part_bytes(f)};
        if (gives_input(f))
            out[part].iov_base = (char *)(uintptr_t)c->in + (size_t)f->low * c->element;
        else if (f->count && nodes_of(f, c->rank))
            to = write_nodes(f, 0, f->shards, to);
    }
    set_part(f, c->rank);
    for (int r = 0; r < c->size; r++) {
        in[r] = (struct iovec){to, (size_t)nodes_of(f, r) * part_bytes(f)};
        f->nodes[r] = r == c->rank ? out[r].iov_base : to;
        to += in[r].iov_len;
    }
    return tutti__coll_exchange_all(c, out, in);
}

static tutti_status share(fixed *f, struct iovec *out, struct iovec *in)
{
    tutti_collective *c = f->call;
    for (int r = 0; r < c->size; r++) {
        set_part(f, r);
        in[r] = (struct iovec){(char *)c->out + (size_t)f->low * c->element, part_bytes(f)};
    }
    set_part(f, c->rank);
    if (f->count) {
        char *own = in[c->rank].iov_base;
        tutti__coll_copy(c, own, fold_all(f, 0, f->shards, 0, own), part_bytes(f));
        tutti__fold_finish(c->dtype, c->reduction, own, f->count, f->shards);
    }
    for (int r = 0; r < c->size; r++)
        out[r] = in[c->rank];
    return tutti__coll_exchange_all(c, out, in);
}

/* The own input is read before the output is written, so that they may be the same memory. */
static tutti_status fixed_all_reduce(tutti_collective *c)
{
    fixed f = {.call = c, .shards = c->shards ? c->shards : c->size};
    int levels = tutti__log2(f.shards) + 2;
    size_t part = ((size_t)c->count / (size_t)c->size + 1) * c->element, most = 0;
    for (int r = 0; r < c->size; r++)
        most += (size_t)nodes_of(&f, r) * part;
    if (!gives_input(&f))
        most += (size_t)nodes_of(&f, c->rank) * part * (size_t)c->size;
    void *scratch;
    TUTTI_TRY(tutti__coll_scratch(c, most + (size_t)levels * 2 * part, &scratch));
    struct iovec *tables = tutti__recycle_zeros((size_t)c->size * 2, sizeof *tables);
    f.nodes = tutti__recycle_zeros((size_t)c->size, sizeof *f.nodes);
    f.temporary = (char *)scratch + most;
    tutti_status status = TUTTI_OK;
    if (!tables || !f.nodes)
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory for messages to %d ranks", c->size);
    if (status == TUTTI_OK)
        status = trade(&f, scratch, tables, tables + c->size);
    if (status == TUTTI_OK)
        status = share(&f, tables, tables + c->size);
    tutti__recycle_free(tables);
    tutti__recycle_free(f.nodes);
    return status;
}

/* With one node for each rank: p - 1 messages out and in, twice. First the message and the others'
 * nodes of one part pass through the caches, then the message. Sums on their way to the root of the
 * tree go into memory of their own. */
static double fixed_cost_all_reduce(const tutti_cost_query *q)
{
    double part = q->bytes / q->ranks, touched = 2 * q->bytes - part;
    return tutti__coll_cost_exchange_many(q, part, touched) +
           tutti__coll_cost_exchange_many(q, part, q->bytes) +
           tutti__coll_cost_add_in(q, part, touched) +
           (q->ranks - 2) * tutti__coll_cost_add_into(q, part, touched);
}

const tutti_coll tutti_coll_fixed = {
    .name = "fixed",
    .doc = "one tree over shards: the same bits for every number of ranks",
    .all_cross = true,
    .special = true,
    .on = {[TUTTI_ALL_REDUCE] = {fixed_all_reduce, fixed_cost_all_reduce,
                                 "2(p-1)a + 2(p-1)/p Mb + (p-1)/p Mg"}},
};
