/* mesh.c: everybody talks to everybody, each about one block. Rank r gets block r of all others at
 * once and folds them in the order of ranks; then it gives the result to all at once. Two steps
 * whatever p is, and 2 (p - 1) / p M bytes leave each rank: the fewest of both, where the network
 * carries p - 1 messages of each rank at a time. */
#include "comm/coll/coll.h"

#include "base/recycle.h"
#include <stdlib.h>

static size_t offset_of(const tutti_collective *c, int part)
{
    return (size_t)tutti__coll_cut(c->count, c->size, part) * c->element;
}

/* Block `rank` of the result, in its place in `out`. */
static tutti_status fold_block(tutti_collective *c, struct iovec *out, struct iovec *in, char *room)
{
    size_t low = offset_of(c, c->rank), bytes = offset_of(c, c->rank + 1) - low;
    int64_t count = (int64_t)(bytes / c->element);
    for (int r = 0; r < c->size; r++) {
        size_t start = offset_of(c, r), size = offset_of(c, r + 1) - start;
        out[r] = (struct iovec){(char *)(uintptr_t)c->in + start, size};
        in[r] = (struct iovec){room + (size_t)r * bytes, bytes};
    }
    TUTTI_TRY(tutti__coll_exchange_all(c, out, in));
    const void **inputs = (const void **)(void *)out;
    for (int r = 0; r < c->size; r++)
        inputs[r] = r == c->rank ? (const char *)c->in + low : room + (size_t)r * bytes;
    if (count > 0)
        c->fold((char *)c->out + low, inputs, c->size, count);
    tutti__fold_finish(c->dtype, c->reduction, (char *)c->out + low, count, c->size);
    return TUTTI_OK;
}

static tutti_status mesh_all_reduce(tutti_collective *c)
{
    size_t most = offset_of(c, 1) + c->element; /* of a block */
    void *room;
    TUTTI_TRY(tutti__coll_scratch(c, most * (size_t)c->size + 1, &room));
    struct iovec *out = tutti__recycle_zeros((size_t)c->size * 2, sizeof *out);
    if (!out)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for messages to %d ranks", c->size);
    struct iovec *in = out + c->size;
    tutti_status status = fold_block(c, out, in, room);
    size_t low = offset_of(c, c->rank), size = offset_of(c, c->rank + 1) - low;
    for (int r = 0; r < c->size; r++) {
        out[r] = (struct iovec){(char *)c->out + low, size};
        in[r] =
            (struct iovec){(char *)c->out + offset_of(c, r), offset_of(c, r + 1) - offset_of(c, r)};
    }
    if (status == TUTTI_OK)
        status = tutti__coll_exchange_all(c, out, in);
    tutti__recycle_free(out);
    return status;
}

/* Messages of a step leave one behind the other. */
static double mesh_cost_all_reduce(const tutti_cost_query *q)
{
    double block = q->bytes / q->ranks;
    double meet = q->ranks > 2 && q->link == TUTTI_LINK_BETWEEN ? 1.02 : 1; /* at their receivers */
    return meet * (2 * tutti__coll_cost_blocks(q, block, q->ranks - 1) +
                   (q->ranks - 1) * tutti__coll_cost_add_block(q, block));
}

const tutti_coll tutti_coll_mesh = {
    .name = "mesh",
    .doc = "everybody to everybody, a block each",
    .all_cross = true,
    .in_parts = true,
    .on = {[TUTTI_ALL_REDUCE] = {mesh_all_reduce, mesh_cost_all_reduce,
                                 "2(p-1)(a + M/p b) + (p-1)/p Mg, in 2 steps, between "
                                 "machines 2 % more"}},
};
