/* direct_all_reduce.c: every block of the result is computed once, by whoever takes it, from all
 * ranks' inputs in the order of ranks, and written to all ranks' outputs. A rank reads M bytes and
 * writes M bytes in all, like a copy. */
#include <string.h>

#include "comm/coll/direct.h"
#include "comm/comm.h"

enum {
    BLOCK_LEAST = 16 << 10, /* bytes that one rank takes at a time */
    BLOCK_MOST = 256 << 10,
    INNER = 8 << 10, /* bytes of each rank that stay in the nearest cache */
};

typedef struct abort_flag {
    uint64_t in, out;
} abort_flag;

/* All outputs get the fold of all inputs, elements [low, high). */
static void fold_to_all(tutti_collective *c, int64_t low, int64_t high)
{
    tutti_area *area = c->comm->area;
    const void *in[64], **inputs = c->size <= 64 ? in : area->inputs + c->size;
    char *own = area->outputs[area->rank];
    int64_t inner = INNER / (int64_t)c->element;
    for (int64_t start = low; start < high; start += inner) {
        int64_t count = high - start < inner ? high - start : inner;
        size_t offset = (size_t)start * c->element, bytes = (size_t)count * c->element;
        for (int r = 0; r < c->size; r++)
            inputs[r] = (const char *)area->inputs[r] + offset;
        c->fold(own + offset, inputs, c->size, count);
        tutti__fold_finish(c->dtype, c->reduction, own + offset, count, c->size);
        for (int r = 0; r < c->size; r++)
            if (r != area->rank)
                memcpy((char *)area->outputs[r] + offset, own + offset, bytes);
    }
}

/* Whoever is ready takes the next block. */
static void fold_claimed(tutti_collective *c, int64_t block)
{
    int64_t step = block / TUTTI_LINE * TUTTI_LINE / (int64_t)c->element;
    int64_t blocks = (c->count + step - 1) / step, taken;
    while ((taken = tutti__area_claim(c->comm->area, blocks)) >= 0) {
        int64_t low = taken * step, high = low + step < c->count ? low + step : c->count;
        fold_to_all(c, low, high);
    }
}

/* Each rank its part, whole lines: few blocks are not worth claiming, and would go to and fro
 * between the caches. */
static void fold_even(tutti_collective *c)
{
    int64_t line = TUTTI_LINE / (int64_t)c->element, lines = (c->count + line - 1) / line;
    int64_t low = tutti__coll_cut(lines, c->size, c->rank) * line;
    int64_t high = tutti__coll_cut(lines, c->size, c->rank + 1) * line;
    fold_to_all(c, low, high < c->count ? high : c->count);
}

static tutti_status in_place(tutti_collective *c)
{
    tutti_area *area = c->comm->area;
    int64_t bytes = c->count * (int64_t)c->element;
    int64_t block = bytes / (c->size * 4);
    TUTTI_TRY(tutti__area_reach(area));
    if (block < BLOCK_LEAST)
        fold_even(c);
    else
        fold_claimed(c, block > BLOCK_MOST ? BLOCK_MOST : block);
    tutti__area_let_go(area);
    tutti__area_arrive(area);
    return tutti__area_await_all(area, c->deadline_ns);
}

/* A piece of the private buffers: elements [start, start + count), each rank's share of them a
 * cut. */
typedef struct piece {
    int64_t start, count;
} piece;

static piece piece_of(const tutti_collective *c, int64_t k)
{
    int64_t most = TUTTI_STAGE_BYTES / (int64_t)c->element, left = c->count - k * most;
    return (piece){k * most, left < most ? left : most};
}

/* What the others will fold of it; the own share is read where it lies. */
static void stage(tutti_collective *c, uint64_t phase, piece p)
{
    size_t low = (size_t)tutti__coll_cut(p.count, c->size, c->rank) * c->element;
    size_t high = (size_t)tutti__coll_cut(p.count, c->size, c->rank + 1) * c->element;
    char *to = tutti__area_stage(c->comm->area, c->comm->area->rank, phase);
    const char *from = (const char *)c->in + (size_t)p.start * c->element;
    memcpy(to, from, low);
    memcpy(to + high, from + high, (size_t)p.count * c->element - high);
}

/* This rank's share, to its own output and to where the others fetch it. */
static void fold_share(tutti_collective *c, uint64_t phase, piece p)
{
    tutti_area *area = c->comm->area;
    const void *in[64], **inputs = c->size <= 64 ? in : area->inputs + c->size;
    char *result = tutti__area_result(area, area->rank, phase);
    int64_t low = tutti__coll_cut(p.count, c->size, c->rank);
    int64_t high = tutti__coll_cut(p.count, c->size, c->rank + 1);
    int64_t inner = INNER / (int64_t)c->element;
    for (int64_t at = low; at < high; at += inner) {
        int64_t count = high - at < inner ? high - at : inner;
        size_t mine = (size_t)(p.start + at) * c->element, offset = (size_t)at * c->element;
        char *out = (char *)c->out + mine;
        for (int r = 0; r < c->size; r++)
            inputs[r] = r == area->rank ? (const char *)c->in + mine
                                        : tutti__area_stage(area, r, phase) + offset;
        c->fold(out, inputs, c->size, count);
        tutti__fold_finish(c->dtype, c->reduction, out, count, c->size);
        memcpy(result + (size_t)(at - low) * c->element, out, (size_t)count * c->element);
    }
}

/* The others' shares. */
static void fetch(tutti_collective *c, uint64_t phase, piece p)
{
    for (int r = 0; r < c->size; r++) {
        int64_t low = tutti__coll_cut(p.count, c->size, r);
        int64_t high = tutti__coll_cut(p.count, c->size, r + 1);
        if (r != c->rank)
            memcpy((char *)c->out + (size_t)(p.start + low) * c->element,
                   tutti__area_result(c->comm->area, r, phase), (size_t)(high - low) * c->element);
    }
}

/* Through stages. In phase k piece k is folded, piece k - 1 fetched and piece k + 1 staged, so
 * that ranks wait for each other once a piece. */
static tutti_status staged(tutti_collective *c)
{
    tutti_area *area = c->comm->area;
    int64_t most = TUTTI_STAGE_BYTES / (int64_t)c->element;
    int64_t pieces = (c->count + most - 1) / most;
    for (int64_t k = -1; k <= pieces; k++) {
        if (k >= 0 && k < pieces)
            fold_share(c, area->phase, piece_of(c, k));
        if (k + 1 < pieces)
            stage(c, area->phase + 1, piece_of(c, k + 1));
        if (k >= 1)
            fetch(c, area->phase - 1, piece_of(c, k - 1));
        if (k == pieces)
            break;
        tutti__area_arrive(area);
        TUTTI_TRY(tutti__area_await_all(area, c->deadline_ns));
    }
    return TUTTI_OK;
}

tutti_status tutti__direct_all_reduce(tutti_collective *c)
{
    tutti_area *area = c->comm->area;
    size_t bytes = (size_t)c->count * c->element;
    abort_flag own = {.in = tutti__direct_address(area, c->in, bytes),
                      .out = tutti__direct_address(area, c->out, bytes)};
    memcpy(tutti__area_next(area), &own, sizeof own);
    tutti__area_arrive(area);
    TUTTI_TRY(tutti__area_await_all(area, c->deadline_ns));
    bool reachable = true;
    for (int r = 0; r < c->size; r++) {
        abort_flag theirs;
        memcpy(&theirs, tutti__area_slot(area, r)->payload, sizeof theirs);
        reachable &= theirs.in != 0 && theirs.out != 0;
        if (!reachable)
            break;
        area->inputs[r] = tutti__direct_pointer(area, theirs.in);
        area->outputs[r] = tutti__direct_pointer(area, theirs.out);
    }
    return reachable ? in_place(c) : staged(c);
}
