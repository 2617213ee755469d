/* double_tree.c: two binary trees over the same ranks, of which each carries half of the message
 * (Sanders, Speck and Träff, 2009). Who is inside one tree is a leaf of the other, so that all
 * links work: log p steps like a tree, 2 M bytes out of each rank like a pipeline.
 *
 * A half goes in chunks: chunk c leaves depth d towards the root in beat c + D - d and comes back
 * to depth d in beat c + D + d - 1 (D: the tree's depth, the root's is 0). Sender and receiver of a
 * message are always in the same beat, so nobody waits in a circle. The root's bits are
 * everybody's.
 */
#include "comm/coll/coll.h"
#include <math.h>
#include <stdlib.h>

enum { CHUNK = 128 << 10, CHUNKS_MOST = 64 };

/* One tree, as one rank sees it: ranks, -1 for none. */
typedef struct tree {
    int up, down[2], depth;
    int64_t low, count; /* its half of the message, elements */
} tree;

/* Place 0 is the root with one child; below it the tree is by the lowest set bit of a place: odd
 * places are leaves. */
static int parent_of(int place, int size)
{
    int bit = place & -place, up = (place ^ bit) | bit << 1;
    return place == 0 ? -1 : up < size ? up : place ^ bit;
}

static int depth_of(int place, int size)
{
    int depth = 0;
    for (; place > 0; place = parent_of(place, size))
        depth++;
    return depth;
}

static void children_of(int place, int size, int *ret)
{
    ret[0] = ret[1] = -1;
    if (place == 0) {
        int top = 1;
        while (top * 2 < size)
            top *= 2;
        ret[0] = size > 1 ? top : -1;
        return;
    }
    int bit = (place & -place) / 2;
    ret[0] = bit ? place - bit : -1;
    while (bit && place + bit >= size)
        bit /= 2;
    ret[1] = bit ? place + bit : -1;
}

/* The second tree's places: mirrored for even sizes, turned by one for odd ones, so that its inner
 * places are the first one's leaves. */
static int rank_of(int place, int size, int which)
{
    if (place < 0 || which == 0)
        return place;
    return size % 2 == 0 ? size - 1 - place : (place + 1) % size;
}

static int place_of(int rank, int size, int which)
{
    if (which == 0)
        return rank;
    return size % 2 == 0 ? size - 1 - rank : (rank + size - 1) % size;
}

static tree tree_of(const tutti_collective *c, int which)
{
    int place = place_of(c->rank, c->size, which);
    tree t = {.depth = depth_of(place, c->size)};
    t.up = rank_of(parent_of(place, c->size), c->size, which);
    children_of(place, c->size, t.down);
    for (int i = 0; i < 2; i++)
        t.down[i] = rank_of(t.down[i], c->size, which);
    t.low = tutti__coll_cut(c->count, 2, which);
    t.count = tutti__coll_cut(c->count, 2, which + 1) - t.low;
    return t;
}

/* Place 1 is the deepest: on the way to the root the lowest bit of a place only grows. */
static int depth(int size)
{
    return size > 1 ? depth_of(1, size) : 0;
}

static int chunks_for(int64_t half, size_t element)
{
    int64_t chunks = half * (int64_t)element / CHUNK;
    return chunks < 1 ? 1 : chunks > CHUNKS_MOST ? CHUNKS_MOST : (int)chunks;
}

typedef struct beat {
    tutti_collective *call;
    int depth, chunks;
    char *room; /* two chunks for each tree: what children gave */
    size_t chunk_bytes;
    tutti_transfer transfers[12];
    int count;
} beat;

static void double_tree_add(beat *b, bool outgoing, int peer, char *data, size_t bytes)
{
    if (peer >= 0 && bytes > 0)
        b->transfers[b->count++] = (tutti_transfer){outgoing, peer, data, bytes};
}

/* Where chunk k of a tree's half is, and its size; 0 when there is none. */
static size_t chunk_at(const beat *b, const tree *t, int k, char **ret)
{
    if (k < 0 || k >= b->chunks)
        return 0;
    int64_t low = tutti__coll_cut(t->count, b->chunks, k);
    int64_t high = tutti__coll_cut(t->count, b->chunks, k + 1);
    *ret = (char *)b->call->out + (size_t)(t->low + low) * b->call->element;
    return (size_t)(high - low) * b->call->element;
}

/* What one tree sends and receives in a beat. */
static void post(beat *b, const tree *t, int which, int number)
{
    char *data = NULL;
    size_t bytes = chunk_at(b, t, number - (b->depth - t->depth - 1), &data);
    for (int i = 0; i < 2; i++) /* from the children, on the way up */
        double_tree_add(b, false, t->down[i], b->room + (size_t)(which * 2 + i) * b->chunk_bytes,
                        bytes);
    bytes = chunk_at(b, t, number - (b->depth - t->depth), &data);
    double_tree_add(b, true, t->up, data, bytes);
    bytes = chunk_at(b, t, number - (b->depth + t->depth - 1), &data);
    double_tree_add(b, false, t->up, data, bytes);
    bytes = chunk_at(b, t, number - (b->depth + t->depth), &data);
    for (int i = 0; i < 2; i++)
        double_tree_add(b, true, t->down[i], data, bytes);
}

static void double_tree_fold(beat *b, const tree *t, int which, int number)
{
    tutti_collective *c = b->call;
    char *data = NULL;
    size_t bytes = chunk_at(b, t, number - (b->depth - t->depth - 1), &data);
    int64_t count = (int64_t)(bytes / c->element);
    if (count == 0)
        return;
    for (int i = 0; i < 2; i++)
        if (t->down[i] >= 0)
            tutti__coll_fold(c, data, data, b->room + (size_t)(which * 2 + i) * b->chunk_bytes,
                             count);
    if (t->up < 0)
        tutti__fold_finish(c->dtype, c->reduction, data, count, c->size);
}

static tutti_status double_tree_all_reduce(tutti_collective *c)
{
    tree trees[2] = {tree_of(c, 0), tree_of(c, 1)};
    beat b = {.call = c, .depth = depth(c->size), .chunks = chunks_for(trees[1].count, c->element)};
    b.chunk_bytes = ((size_t)trees[1].count / (size_t)b.chunks + 1) * c->element;
    void *room;
    TUTTI_TRY(tutti__coll_scratch(c, 4 * b.chunk_bytes, &room));
    b.room = room;
    tutti__coll_copy(c, c->out, c->in, (size_t)c->count * c->element);
    for (int number = 0; number < b.chunks + 2 * b.depth; number++) {
        b.count = 0;
        for (int which = 0; which < 2; which++)
            post(&b, &trees[which], which, number);
        TUTTI_TRY(tutti__coll_transfer(c, b.transfers, b.count));
        for (int which = 0; which < 2; which++)
            double_tree_fold(&b, &trees[which], which, number);
    }
    return TUTTI_OK;
}

/* In a full beat a rank sends and receives four chunks: one up and two down as an inner rank, one
 * up as a leaf. On its way to the root and back a chunk meets less than one other in each beat. Two
 * ranks are each the root of one tree. What is sent comes back one beat later, to a leaf three,
 * while the caches hold it, as they do what goes on to further ranks: of what an exchange of as
 * many bytes brings out of memory and back half does so, of the exchange of two ranks two of three
 * streams. On lanes, ranks disturb each other by as much as all have to do, (p - 1) / p of what
 * the busiest has, and on a chunk's way hardly; of two ranks nothing stays in the caches, and the
 * message passes through them whole, up and down. */
static double cost_beat(const tutti_cost_query *q, double bytes, double held, double all)
{
    double cold = q->ranks == 2 ? q->quiet ? 1 : 2.0 / 3 : 1.0 / 2;
    return (1 - cold) * tutti__cost_stream(q, bytes, held) +
           cold * tutti__cost_stream(q, bytes, all);
}
static double double_tree_cost_all_reduce(const tutti_cost_query *q)
{
    bool two = q->ranks == 2;
    tutti_cost_query quiet = *q;
    if (!two && q->quiet)
        quiet.cost = q->quiet;
    double half = q->bytes / 2, chunks = half < CHUNK ? 1 : half / CHUNK;
    chunks = chunks > CHUNKS_MOST ? CHUNKS_MOST : chunks;
    double chunk = half / chunks, each = two ? 2 : 4, on_the_way = 2 * depth(q->ranks);
    double met = two ? 1 : 1.4, children = two ? 1 : 2;
    double all = two && q->quiet ? q->bytes : (q->bytes + children * chunk) / 2;
    double held = fmin((two ? 7.0 / 2 : 2) * chunk, all); /* what is on its way, and what came */
    double full = ((q->ranks - 1) * cost_beat(q, each * chunk, held, all) +
                   cost_beat(&quiet, each * chunk, held, all)) /
                  q->ranks;
    double one_way = two ? 0 : q->cost->link[q->link].turn / 2; /* where it meets none */
    double thin = cost_beat(&quiet, met * chunk, held, all) - one_way;
    double folds = children * half; /* as the inner rank of one tree */
    double waits = chunks > 1 ? on_the_way : depth(q->ranks) - 1; /* for others' folds */
    return (chunks - 1) * full + on_the_way * thin + tutti__coll_cost_sum(q, folds, 2 * all) +
           waits * tutti__coll_cost_sum(&quiet, chunk, 2 * all);
}

const tutti_coll tutti_coll_double_tree = {
    .name = "double_tree",
    .doc = "two binary trees, half of the message each",
    .on = {[TUTTI_ALL_REDUCE] = {double_tree_all_reduce, double_tree_cost_all_reduce,
                                 "(k-1)(a + 4Cb) + 2 log p (a + 1.4Cb + Cg) + Mg, k = 1 to 64 "
                                 "chunks of C = M/2k, of 128 KiB or more (k = 1: (log p - 1)Cg for "
                                 "2 log p Cg); p = 2: (k-1)(a + 2Cb) + 2(a + Cb + Cg) + M/2 g"}},
};
