/* direct.c: ranks of one machine read each other's memory. What is given lies in memory that all
 * can reach (the arena, or one process): nothing is copied; else it goes through stages, piece by
 * piece, while the caches hold it. */
#include "comm/coll/direct.h"

#include <math.h>
#include <string.h>

#include "comm/comm.h"

/* What the ranks tell each other before they start. */
typedef struct abort_flag {
    uint64_t address; /* in the segment (plus 1), or a pointer in one process; 0: private memory */
} abort_flag;

uint64_t tutti__direct_address(const tutti_area *area, const void *data, size_t bytes)
{
    if (!tutti__segment_holds(area->segment, data, bytes))
        return 0;
    if (area->segment->one_process)
        return (uint64_t)(uintptr_t)data;
    return (uint64_t)((const char *)data - area->segment->base) + 1;
}

void *tutti__direct_pointer(const tutti_area *area, uint64_t address)
{
    if (area->segment->one_process)
        return (void *)(uintptr_t)address;
    return area->segment->base + address - 1;
}

/* An operation in which ranks only read what others give and write what is theirs. */
typedef struct pull {
    tutti_collective *call;
    const void *in;
    /* Bytes that a rank gives; 0 for none. */
    size_t (*given)(const tutti_collective *call, int rank);
    /* Takes what this rank needs of bytes [offset, offset + size) of every rank: rank r's piece
     * begins at pieces[r] and is shorter where r gives less. */
    void (*take)(const tutti_collective *call, const void *const *pieces, size_t offset,
                 size_t size);
} pull;

static size_t most_given(const pull *p)
{
    size_t most = 0;
    for (int r = 0; r < p->call->size; r++) {
        size_t given = p->given(p->call, r);
        most = given > most ? given : most;
    }
    return most;
}

/* Small: everything is in the slots, one phase. */
static tutti_status pull_small(const pull *p, size_t most)
{
    tutti_area *area = p->call->comm->area;
    size_t given = p->given(p->call, area->rank);
    if (given > 0)
        memcpy(tutti__area_next(area), p->in, given);
    tutti__area_arrive(area);
    for (int r = 0; r < area->size; r++)
        area->inputs[r] = tutti__area_slot(area, r)->payload;
    TUTTI_TRY(tutti__area_await_all(area, p->call->deadline_ns));
    p->take(p->call, area->inputs, 0, most);
    return TUTTI_OK;
}

static tutti_status pull_staged(const pull *p, size_t most)
{
    tutti_area *area = p->call->comm->area;
    size_t mine = p->given(p->call, area->rank);
    for (size_t offset = 0; offset < most; offset += TUTTI_STAGE_BYTES) {
        size_t size = most - offset < TUTTI_STAGE_BYTES ? most - offset : TUTTI_STAGE_BYTES;
        if (offset < mine)
            memcpy(tutti__area_stage(area, area->rank, area->phase + 1),
                   (const char *)p->in + offset, mine - offset < size ? mine - offset : size);
        tutti__area_arrive(area);
        for (int r = 0; r < area->size; r++)
            area->inputs[r] = tutti__area_stage(area, r, area->phase);
        TUTTI_TRY(tutti__area_await_all(area, p->call->deadline_ns));
        p->take(p->call, area->inputs, offset, size);
    }
    return TUTTI_OK;
}

static tutti_status pull_run(const pull *p)
{
    tutti_area *area = p->call->comm->area;
    size_t most = most_given(p), mine = p->given(p->call, area->rank);
    if (most <= TUTTI_SLOT_PAYLOAD)
        return pull_small(p, most);
    abort_flag own = {.address = tutti__direct_address(area, p->in, mine)};
    memcpy(tutti__area_next(area), &own, sizeof own);
    tutti__area_arrive(area);
    TUTTI_TRY(tutti__area_await_all(area, p->call->deadline_ns));
    bool all = true;
    for (int r = 0; r < area->size; r++) {
        abort_flag theirs;
        memcpy(&theirs, tutti__area_slot(area, r)->payload, sizeof theirs);
        all &= theirs.address != 0 || p->given(p->call, r) == 0;
        area->inputs[r] = theirs.address ? tutti__direct_pointer(area, theirs.address) : NULL;
    }
    if (!all)
        return pull_staged(p, most);
    TUTTI_TRY(tutti__area_reach(area));
    p->take(p->call, area->inputs, 0, most);
    tutti__area_let_go(area);
    tutti__area_arrive(area);
    return tutti__area_await_all(area, p->call->deadline_ns);
}

static tutti_status direct_barrier(tutti_collective *c)
{
    tutti__area_arrive(c->comm->area);
    return tutti__area_await_all(c->comm->area, c->deadline_ns);
}

/* Broadcast, gather and all_gather take whole blocks. */
static size_t from_root(const tutti_collective *c, int rank)
{
    return rank == c->root ? (size_t)c->count * c->element : 0;
}

static void take_broadcast(const tutti_collective *c, const void *const *pieces, size_t offset,
                           size_t size)
{
    if (c->rank != c->root)
        memcpy((char *)c->out + offset, pieces[c->root], size);
}

static tutti_status direct_broadcast(tutti_collective *c)
{
    return pull_run(&(pull){c, c->out, from_root, take_broadcast});
}

static size_t block(const tutti_collective *c, int rank)
{
    return (size_t)(c->counts ? c->counts[rank] : c->count) * c->element;
}

/* From the own block on, so that ranks do not all read the same memory at the same time. */
static void take_all(const tutti_collective *c, const void *const *pieces, size_t offset,
                     size_t size)
{
    char *out = c->out;
    for (int r = 0; r < c->rank; r++)
        out += block(c, r);
    for (int i = 0; i < c->size; i++) {
        int r = c->rank + i < c->size ? c->rank + i : c->rank + i - c->size;
        out = r == 0 ? c->out : out;
        size_t bytes = block(c, r);
        size_t part = offset < bytes ? bytes - offset : 0;
        part = part < size ? part : size;
        if (part > 0 && c->into && r != c->rank)
            c->into->place(c->into->context, r, offset, pieces[r], part);
        else if (part > 0 && (r != c->rank || out != c->in))
            memmove(out + offset, r == c->rank ? (const char *)c->in + offset : pieces[r], part);
        out += bytes;
    }
}

static tutti_status direct_all_gather(tutti_collective *c)
{
    c->placed = c->into != NULL;
    return pull_run(&(pull){c, c->in, block, take_all});
}

static void take_at_root(const tutti_collective *c, const void *const *pieces, size_t offset,
                         size_t size)
{
    if (c->rank == c->root)
        take_all(c, pieces, offset, size);
}

static tutti_status direct_gather(tutti_collective *c)
{
    return pull_run(&(pull){c, c->in, block, take_at_root});
}

/* Scatter, all_to_all and reduce_scatter give all blocks and take those of this rank. */
static size_t all_from_root(const tutti_collective *c, int rank)
{
    return rank == c->root ? (size_t)c->count * c->element * (size_t)c->size : 0;
}

static size_t all_blocks(const tutti_collective *c, int rank)
{
    (void)rank;
    return (size_t)c->count * c->element * (size_t)c->size;
}

/* The part of [offset, offset + size) that lies in this rank's block: where it begins in the piece
 * and in the block. */
static size_t overlap(const tutti_collective *c, size_t offset, size_t size, size_t *ret_piece,
                      size_t *ret_block)
{
    size_t bytes = (size_t)c->count * c->element, start = bytes * (size_t)c->rank;
    size_t low = offset > start ? offset : start;
    size_t high = offset + size < start + bytes ? offset + size : start + bytes;
    if (low >= high)
        return 0;
    *ret_piece = low - offset;
    *ret_block = low - start;
    return high - low;
}

static void take_scatter(const tutti_collective *c, const void *const *pieces, size_t offset,
                         size_t size)
{
    size_t at, to, bytes = overlap(c, offset, size, &at, &to);
    if (bytes)
        memmove((char *)c->out + to, (const char *)pieces[c->root] + at, bytes);
}

static tutti_status scatter(tutti_collective *c)
{
    return pull_run(&(pull){c, c->in, all_from_root, take_scatter});
}

static void take_all_to_all(const tutti_collective *c, const void *const *pieces, size_t offset,
                            size_t size)
{
    size_t at, to, bytes = overlap(c, offset, size, &at, &to);
    size_t each = (size_t)c->count * c->element;
    for (int r = 0; bytes && r < c->size; r++)
        memcpy((char *)c->out + (size_t)r * each + to, (const char *)pieces[r] + at, bytes);
}

static tutti_status all_to_all(tutti_collective *c)
{
    return pull_run(&(pull){c, c->in, all_blocks, take_all_to_all});
}

/* Folds `bytes` of every piece from `at` on into out + to. */
static void fold_pieces(const tutti_collective *c, const void *const *pieces, size_t at, size_t to,
                        size_t bytes)
{
    tutti_area *area = c->comm->area;
    int64_t count = (int64_t)(bytes / c->element);
    char *out = (char *)c->out + to;
    for (int r = 0; r < c->size; r++)
        area->outputs[r] = (char *)pieces[r] + at;
    c->fold(out, (const void *const *)area->outputs, c->size, count);
    tutti__fold_finish(c->dtype, c->reduction, out, count, c->size);
}

static void take_reduce_scatter(const tutti_collective *c, const void *const *pieces, size_t offset,
                                size_t size)
{
    size_t at, to, bytes = overlap(c, offset, size, &at, &to);
    if (bytes)
        fold_pieces(c, pieces, at, to, bytes);
}

/* In the slots stand addresses, and what is common where it fits. */
static bool read_notices(const tutti_collective *c, bool carries)
{
    tutti_area *area = c->comm->area;
    bool all = true;
    for (int r = 0; r < area->size; r++) {
        abort_flag theirs;
        const char *slot = tutti__area_slot(area, r)->payload;
        memcpy(&theirs, slot, sizeof theirs);
        all &= theirs.address != 0;
        area->inputs[r] = theirs.address ? tutti__direct_pointer(area, theirs.address) : NULL;
        area->outputs[r] = (void *)(uintptr_t)(slot + sizeof theirs);
    }
    if (carries)
        c->fold(c->common->data, (const void *const *)area->outputs, c->size, c->common->count);
    return all;
}

/* One phase: each rank reads what is its own of the others', and nobody writes there before all
 * have met again. */
static tutti_status reduce_scatter_common(tutti_collective *c)
{
    tutti_area *area = c->comm->area;
    size_t bytes = (size_t)c->count * c->element, all = bytes * (size_t)c->size;
    size_t common = (size_t)c->common->count * c->element;
    abort_flag own = {.address = tutti__direct_address(area, c->in, all)};
    char *slot = tutti__area_next(area);
    c->common->done = sizeof own + common <= TUTTI_SLOT_PAYLOAD;
    memcpy(slot, &own, sizeof own);
    if (c->common->done)
        memcpy(slot + sizeof own, c->common->data, common);
    tutti__area_arrive(area);
    TUTTI_TRY(tutti__area_await_all(area, c->deadline_ns));
    if (!read_notices(c, c->common->done))
        return pull_staged(&(pull){c, c->in, all_blocks, take_reduce_scatter}, all);
    TUTTI_TRY(tutti__area_reach(area));
    if (bytes > 0)
        fold_pieces(c, area->inputs, bytes * (size_t)c->rank, 0, bytes);
    tutti__area_let_go(area);
    return TUTTI_OK;
}

static tutti_status direct_reduce_scatter(tutti_collective *c)
{
    if (c->common && c->reduction == TUTTI_SUM)
        return reduce_scatter_common(c);
    return pull_run(&(pull){c, c->in, all_blocks, take_reduce_scatter});
}

static void take_reduce(const tutti_collective *c, const void *const *pieces, size_t offset,
                        size_t size)
{
    if (c->rank == c->root)
        fold_pieces(c, pieces, 0, offset, size);
}

static tutti_status direct_reduce(tutti_collective *c)
{
    return pull_run(&(pull){c, c->in, block, take_reduce});
}

static void take_all_reduce(const tutti_collective *c, const void *const *pieces, size_t offset,
                            size_t size)
{
    fold_pieces(c, pieces, 0, offset, size);
}

static tutti_status direct_all_reduce(tutti_collective *c)
{
    if ((size_t)c->count * c->element <= TUTTI_SLOT_PAYLOAD)
        return pull_run(&(pull){c, c->in, block, take_all_reduce});
    return tutti__direct_all_reduce(c);
}

/* One phase each way, one in all for what fits into a slot. */
static double phases(const tutti_cost_query *q, double bytes)
{
    return q->cost->phase * (bytes <= TUTTI_SLOT_PAYLOAD ? 1 : 2);
}
static double direct_cost_barrier(const tutti_cost_query *q)
{
    return q->cost->phase;
}
static double direct_cost_all_reduce(const tutti_cost_query *q)
{
    return phases(q, q->bytes) + tutti__cost_copy(q, q->bytes);
}
static double cost_block(const tutti_cost_query *q)
{
    return phases(q, q->bytes) + tutti__coll_cost_pull(q, q->bytes, q->bytes);
}
/* The root copies its own block, the others theirs, of which nobody else touches anything. */
static double cost_scatter(const tutti_cost_query *q)
{
    return phases(q, q->bytes) +
           fmax(tutti__coll_cost_pull(q, q->bytes, q->bytes), tutti__coll_cost_move(q, q->bytes));
}
/* All copy at once, and all the same: of what is read each rank brings its own block. At the most
 * as in a broadcast in which the root writes too. */
static double direct_cost_all_gather(const tutti_cost_query *q)
{
    double all = q->bytes * q->ranks, read = tutti__coll_cost_pull(q, all, all);
    double move = q->ranks * tutti__coll_cost_move_block(q, q->bytes, all + q->bytes);
    return phases(q, q->bytes) + fmin(fmax(move, read), read * q->ranks / (q->ranks - 1));
}
/* All copy at once, and most of it out of other ranks' caches. */
static double cost_blocks(const tutti_cost_query *q)
{
    double all = q->bytes * q->ranks;
    return phases(q, q->bytes) +
           fmax(tutti__coll_cost_move(q, all), tutti__coll_cost_pull(q, all, all));
}
/* The root copies alone, while those whose memory it reads wait: each one's once, where a broadcast
 * has all ranks read the same. */
static double cost_gather(const tutti_cost_query *q)
{
    double all = q->bytes * q->ranks, alone = q->cost->alone > 0 ? q->cost->alone : 1;
    return phases(q, q->bytes) + fmax(alone * tutti__coll_cost_pull(q, all, all),
                                      q->ranks * tutti__coll_cost_move(q, q->bytes));
}
/* The root folds alone, in one pass: it writes like a copy out of another rank's memory, and reads
 * one source more for each of the others. */
static double cost_reduce(const tutti_cost_query *q)
{
    return phases(q, q->bytes) + tutti__coll_cost_pull(q, q->bytes, q->bytes) +
           (q->ranks - 1) * tutti__coll_cost_source_alone(q, q->bytes);
}
/* All fold at once. What caches do not hold comes as fast as memory gives and takes it: the blocks,
 * and the sum, which is read before it is written, where y += x reads two and writes one. */
static double cost_folding(const tutti_cost_query *q, double block)
{
    static const double slower = 1.3; /* than what a block alone would be: out of memory */
    double touched = q->bytes, add = tutti__coll_cost_add_in(q, block, touched);
    double all = tutti__coll_cost_move_block(q, block, touched) +
                 (q->ranks - 1) * tutti__coll_cost_source(q, block, touched);
    bool memory = add > slower * tutti__cost_add(q, block);
    return memory ? fmin(all, (q->ranks + 2) / 3.0 * add) : all;
}
/* Or as fast as blocks come out of other ranks' caches. */
static double direct_cost_reduce_scatter(const tutti_cost_query *q)
{
    double block = q->bytes / q->ranks;
    return phases(q, q->bytes) + fmax(cost_folding(q, block),
                                      tutti__coll_cost_pull(q, block, block) +
                                          (q->ranks - 1) * tutti__coll_cost_source_alone(q, block));
}

const tutti_coll tutti_coll_direct = {
    .name = "direct",
    .doc = "ranks read each other's memory",
    .shared = true,
    .on =
        {
            [TUTTI_BARRIER] = {direct_barrier, direct_cost_barrier, "f"},
            [TUTTI_BROADCAST] = {direct_broadcast, cost_block, "2f + Mr"},
            [TUTTI_REDUCE] = {direct_reduce, cost_reduce, "2f + Mr + (p-1)M(z-m)"},
            [TUTTI_ALL_REDUCE] = {direct_all_reduce, direct_cost_all_reduce, "2f + Mc"},
            [TUTTI_REDUCE_SCATTER] = {direct_reduce_scatter, direct_cost_reduce_scatter,
                                      "2f + M/p m + (p-1)/p M(z-m)"},
            [TUTTI_ALL_GATHER] = {direct_all_gather, direct_cost_all_gather, "2f + pMm"},
            [TUTTI_GATHER] = {direct_gather, cost_gather, "2f + pMr"},
            [TUTTI_SCATTER] = {scatter, cost_scatter, "2f + Mr"},
            [TUTTI_ALL_TO_ALL] = {all_to_all, cost_blocks, "2f + pMm"},
        },
};
