/* pack.c: values in one stretch of memory, each at the lowest offset that no value which collides
 * with it covers.
 *
 * How much that takes depends on the order of placing. By the moment of making is good for values
 * that come and go like a stack; the large ones first, or the long-lived ones, is good where small
 * ones would lie in the middle of a gap. To find the best order is hard (it is a strip packing), so
 * a few are tried. */
#include "program/pack.h"

#include <stdlib.h>
#include <string.h>

/* Values beyond this number are placed in the first order only: the others take a time that is
 * their square. */
enum { MANY_VALUES = 4096 };

/* Improving an order ends after so many rounds, or looks at pairs of values. */
enum { MOST_ROUNDS = 60, MOST_WORK = 1 << 21 };

/* Bytes that are wanted at each moment; from calloc, or NULL. What lasts to the end is wanted at
 * moment `moments` too. */
static size_t *wanted_bytes(const tutti_pack *pack, size_t moments)
{
    size_t *bytes = calloc(moments + 2, sizeof *bytes); /* first what is added, then the sums */
    for (size_t i = 0; bytes && i < pack->count; i++) {
        const tutti_packed *value = &pack->values[i];
        size_t last = (size_t)value->last < moments ? (size_t)value->last : moments;
        bytes[(size_t)value->first < moments ? (size_t)value->first : moments] += value->size;
        bytes[last + 1] -= value->size; /* may wrap; the sums below do not */
    }
    for (size_t i = 1; bytes && i <= moments; i++)
        bytes[i] += bytes[i - 1];
    return bytes;
}

tutti_status tutti__pack_bound(const tutti_pack *pack, size_t moments, size_t *ret_bytes)
{
    size_t *bytes = wanted_bytes(pack, moments), most = 0;
    if (!bytes)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    for (size_t i = 0; i <= moments; i++)
        most = bytes[i] > most ? bytes[i] : most;
    for (size_t i = 0; pack->count <= MANY_VALUES && i < pack->count; i++) {
        tutti_packed *value = &pack->values[i];
        size_t last = (size_t)value->last < moments ? (size_t)value->last : moments;
        for (size_t at = (size_t)value->first; at <= last; at++)
            value->crowd = bytes[at] > value->crowd ? bytes[at] : value->crowd;
    }
    free(bytes);
    *ret_bytes = most;
    return TUTTI_OK;
}

static int64_t length(const tutti_packed *value)
{
    return (int64_t)value->last - value->first;
}

static int by_making(const void *a, const void *b)
{
    const tutti_packed *x = *(tutti_packed *const *)a, *y = *(tutti_packed *const *)b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

static int by_size(const void *a, const void *b)
{
    const tutti_packed *x = *(tutti_packed *const *)a, *y = *(tutti_packed *const *)b;
    if (x->size != y->size)
        return x->size > y->size ? -1 : 1;
    if (length(x) != length(y))
        return length(x) > length(y) ? -1 : 1;
    return by_making(a, b);
}

static int by_length(const void *a, const void *b)
{
    const tutti_packed *x = *(tutti_packed *const *)a, *y = *(tutti_packed *const *)b;
    if (length(x) != length(y))
        return length(x) > length(y) ? -1 : 1;
    return by_size(a, b);
}

/* Bytes times moments. */
static int by_area(const void *a, const void *b)
{
    const tutti_packed *x = *(tutti_packed *const *)a, *y = *(tutti_packed *const *)b;
    double left = (double)x->size * (double)(length(x) + 1);
    double right = (double)y->size * (double)(length(y) + 1);
    if (left != right)
        return left > right ? -1 : 1;
    return by_size(a, b);
}

/* By the moment after which nobody wants it. */
static int by_end(const void *a, const void *b)
{
    const tutti_packed *x = *(tutti_packed *const *)a, *y = *(tutti_packed *const *)b;
    if (x->last != y->last)
        return x->last < y->last ? -1 : 1;
    return by_making(a, b);
}

/* Where the most is wanted at once there is the least room for mistakes. */
static int by_crowd(const void *a, const void *b)
{
    const tutti_packed *x = *(tutti_packed *const *)a, *y = *(tutti_packed *const *)b;
    if (x->crowd != y->crowd)
        return x->crowd > y->crowd ? -1 : 1;
    return by_size(a, b);
}

typedef struct gap {
    size_t offset, end;
} gap;

typedef struct packing {
    const tutti_pack *pack;
    tutti_packed **queue;  /* in the order of placing */
    tutti_packed **placed; /* by offset */
    size_t *best;          /* offsets, by index in pack->values */
    gap *gaps;             /* by offset, never two that touch */
    size_t gap_count;
} packing;

/* The lowest gap, or, when the tightest is asked for, the smallest that is large enough. */
static size_t find_gap(const packing *p, size_t placed, const tutti_packed *value, bool tightest)
{
    size_t end = 0, found = SIZE_MAX, slack = SIZE_MAX;
    for (size_t i = 0; i < placed; i++) {
        const tutti_packed *other = p->placed[i];
        if (other->offset + other->size <= end || !p->pack->collide(p->pack->context, value, other))
            continue;
        if (other->offset >= end + value->size && other->offset - end - value->size < slack) {
            found = end;
            slack = other->offset - end - value->size;
            if (!tightest)
                return found;
        }
        end = other->offset + other->size;
    }
    return found != SIZE_MAX ? found : end;
}

/* Those that may collide with what is made at a moment or later. */
static size_t keep_wanted(packing *p, size_t placed, int32_t moment)
{
    size_t kept = 0;
    for (size_t i = 0; i < placed; i++)
        if (p->placed[i]->gone == 0 || p->placed[i]->gone > moment)
            p->placed[kept++] = p->placed[i];
    return kept;
}

/* Bytes that placing in the order of the queue takes; SIZE_MAX as soon as it is `limit` or more.
 * `forgets`: the queue is by the moment of making, and what is gone then is in nobody's way. */
static size_t place_all(packing *p, bool tightest, bool forgets, size_t limit)
{
    size_t bytes = 0, placed = 0;
    for (size_t n = 0; n < p->pack->count; n++) {
        tutti_packed *value = p->queue[n];
        if (forgets)
            placed = keep_wanted(p, placed, value->first);
        value->offset = find_gap(p, placed, value, tightest);
        if (value->offset + value->size > bytes)
            bytes = value->offset + value->size;
        if (bytes >= limit)
            return SIZE_MAX;
        size_t at = placed++;
        for (; at > 0 && p->placed[at - 1]->offset > value->offset; at--)
            p->placed[at] = p->placed[at - 1];
        p->placed[at] = value;
    }
    return bytes;
}

/* The value's bytes are free again: a gap, or the gaps beside it grow. */
static void widen_gaps(packing *p, const tutti_packed *value)
{
    size_t low = 0, high = p->gap_count, end = value->offset + value->size;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (p->gaps[middle].offset < value->offset)
            low = middle + 1;
        else
            high = middle;
    }
    gap *at = &p->gaps[low]; /* the first one behind it, if any */
    bool before = low > 0 && at[-1].end == value->offset;
    bool behind = low < p->gap_count && at->offset == end;
    if (before && behind) {
        at[-1].end = at->end;
        memmove(at, at + 1, (--p->gap_count - low) * sizeof *at);
    } else if (before) {
        at[-1].end = end;
    } else if (behind) {
        at->offset = value->offset;
    } else {
        memmove(at + 1, at, (p->gap_count++ - low) * sizeof *at);
        *at = (gap){value->offset, end};
    }
}

/* The lowest gap's first bytes. The last gap has no end. */
static size_t take_from_gaps(packing *p, size_t size)
{
    gap *at = p->gaps;
    while (at->end - at->offset < size)
        at++;
    size_t offset = at->offset;
    at->offset += size;
    if (at->offset == at->end)
        memmove(at, at + 1, (size_t)(p->gaps + --p->gap_count - at) * sizeof *at);
    return offset;
}

/* As place_all by the moment of making in the lowest gaps, where values collide only if they are
 * wanted at the same moment: of those that are not over all collide with the next one and with each
 * other, so what lies between them is all that there is to look at. */
static size_t place_in_turn(packing *p, size_t limit)
{
    size_t bytes = 0, over = 0;
    qsort(p->queue, p->pack->count, sizeof(tutti_packed *), by_making);
    memcpy(p->placed, p->queue, p->pack->count * sizeof(tutti_packed *));
    qsort(p->placed, p->pack->count, sizeof(tutti_packed *), by_end);
    p->gaps[0] = (gap){0, SIZE_MAX};
    p->gap_count = 1;
    for (size_t n = 0; n < p->pack->count; n++) {
        tutti_packed *value = p->queue[n];
        for (; p->placed[over]->last < value->first; over++)
            widen_gaps(p, p->placed[over]);
        value->offset = take_from_gaps(p, value->size);
        if (value->offset + value->size > bytes)
            bytes = value->offset + value->size;
        if (bytes >= limit)
            return SIZE_MAX;
    }
    return bytes;
}

/* Keeps the offsets if they take less than the best so far, whose bytes are returned. */
static size_t keep_better(packing *p, size_t bytes, size_t best)
{
    for (size_t i = 0; bytes < best && i < p->pack->count; i++)
        p->best[i] = p->pack->values[i].offset;
    return bytes < best ? bytes : best;
}

static size_t try_orders(packing *p, size_t bound)
{
    static const struct {
        int (*order)(const void *, const void *);
        bool tightest;
    } ways[] = {{by_making, false}, {by_size, false}, {by_area, false}, {by_crowd, false},
                {by_length, false}, {by_size, true},  {by_crowd, true}, {by_making, true}};
    size_t best = SIZE_MAX, count = p->pack->count;
    size_t tries = count > MANY_VALUES ? 1 : sizeof ways / sizeof *ways;
    for (size_t w = 0; w < tries && best > bound; w++) {
        bool forgets = ways[w].order == by_making;
        if (p->pack->in_turn && forgets && !ways[w].tightest) {
            best = keep_better(p, place_in_turn(p, best), best);
            continue;
        }
        qsort(p->queue, count, sizeof(tutti_packed *), ways[w].order);
        best = keep_better(p, place_all(p, ways[w].tightest, forgets, best), best);
    }
    return best;
}

/* What lies on top was placed too late: it goes to the front of the queue, and all is placed anew.
 * From the orders above, so many times as there is time for. */
static size_t improve(packing *p, size_t bound, size_t best)
{
    static int (*const orders[])(const void *, const void *) = {by_crowd, by_size, by_making};
    size_t count = p->pack->count, rounds = MOST_WORK / (count * count + 1);
    for (size_t o = 0; o < sizeof orders / sizeof *orders && best > bound + bound / 50; o++) {
        qsort(p->queue, count, sizeof(tutti_packed *), orders[o]);
        for (size_t r = 0; r < rounds && r < MOST_ROUNDS && best > bound; r++) {
            size_t bytes = place_all(p, false, false, SIZE_MAX), top = 0;
            best = keep_better(p, bytes, best);
            while (p->queue[top]->offset + p->queue[top]->size != bytes)
                top++;
            tutti_packed *value = p->queue[top];
            memmove(p->queue + 1, p->queue, top * sizeof(tutti_packed *));
            p->queue[0] = value;
        }
    }
    return best;
}

tutti_status tutti__pack(const tutti_pack *pack, size_t bound, size_t *ret_bytes)
{
    *ret_bytes = 0;
    if (pack->count == 0)
        return TUTTI_OK;
    packing p = {.pack = pack,
                 .queue = malloc(pack->count * sizeof(tutti_packed *)),
                 .placed = malloc(pack->count * sizeof(tutti_packed *)),
                 .best = calloc(pack->count, sizeof *p.best),
                 .gaps = malloc((pack->count + 1) * sizeof *p.gaps)};
    tutti_status status = TUTTI_OK;
    if (p.queue && p.placed && p.best && p.gaps) {
        for (size_t i = 0; i < pack->count; i++)
            p.queue[i] = &pack->values[i];
        *ret_bytes = improve(&p, bound, try_orders(&p, bound));
        for (size_t i = 0; i < pack->count; i++)
            pack->values[i].offset = p.best[i];
    } else {
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory to lower a graph");
    }
    free(p.queue);
    free(p.placed);
    free(p.best);
    free(p.gaps);
    return status;
}
