/* overlap.c: see overlap.h. */
#include "comm/group/overlap.h"

#include <stdlib.h>

typedef struct bytes {
    uintptr_t start;
    size_t size;
} bytes;

static bool overlap(bytes a, bytes b)
{
    return a.size > 0 && b.size > 0 && a.start < b.start + b.size && b.start < a.start + a.size;
}

static size_t elements(const tutti_collective *c, int first, int last)
{
    size_t all = 0;
    for (int r = first; c->counts && r < last; r++)
        all += (size_t)c->counts[r];
    return c->counts ? all : (size_t)c->count * (size_t)(last - first);
}

tutti_status tutti__call_apart(const tutti_collective *c)
{
    size_t one = elements(c, c->rank, c->rank + 1) * c->element;
    size_t all = elements(c, 0, c->size) * c->element;
    size_t before = elements(c, 0, c->rank) * c->element;
    bytes in = {(uintptr_t)c->in, one}, out = {(uintptr_t)c->out, one};
    const char *instead = ", or the same for both";
    bool in_place = false, root = c->rank == c->root;
    switch (c->operation) {
    case TUTTI_ALL_REDUCE:
    case TUTTI_REDUCE:
        in_place = in.start == out.start || c->shards || (c->operation == TUTTI_REDUCE && !root);
        break;
    case TUTTI_ALL_GATHER:
    case TUTTI_GATHER:
        out.size = all;
        in_place = in.start == out.start + before || (c->operation == TUTTI_GATHER && !root);
        instead = ", or the own block of out for in";
        break;
    case TUTTI_REDUCE_SCATTER:
    case TUTTI_SCATTER:
        in.size = all;
        in_place = out.start == in.start + before || (c->operation == TUTTI_SCATTER && !root);
        instead = ", or the own block of in for out";
        break;
    case TUTTI_ALL_TO_ALL:
        in.size = out.size = all;
        instead = "";
        break;
    default:
        return TUTTI_OK;
    }
    if (in_place || !c->in || !c->out || !overlap(in, out))
        return TUTTI_OK;
    return tutti_fail(
        TUTTI_INVALID,
        "%s: in and out overlap, of %zu and %zu bytes, %zu apart; give other memory%s",
        tutti__operation_names[c->operation], in.size, out.size,
        (size_t)(in.start < out.start ? out.start - in.start : in.start - out.start), instead);
}

/* A piece, of this number in the caller's list. */
typedef struct placed {
    bytes bytes;
    int number;
} placed;

static placed overlap_place(const tutti_comm_piece *pieces, int number, size_t element)
{
    return (placed){{(uintptr_t)pieces[number].data, (size_t)pieces[number].count * element},
                    number};
}

/* The first two of a list in ascending order that overlap: they stand side by side. */
static bool find_overlap(const placed *list, int count, placed *ret_low, placed *ret_high)
{
    for (int i = 1; i < count; i++)
        if (overlap(list[i - 1].bytes, list[i].bytes)) {
            *ret_low = list[i - 1];
            *ret_high = list[i];
            return true;
        }
    return false;
}

static int by_address(const void *a, const void *b)
{
    const placed *left = a, *right = b;
    if (left->bytes.start != right->bytes.start)
        return left->bytes.start < right->bytes.start ? -1 : 1;
    return left->number - right->number;
}

/* As gradients of a model mostly lie. */
static bool lie_in_order(const tutti_comm_piece *pieces, int count, size_t element)
{
    uintptr_t end = 0;
    for (int i = 0; i < count; i++) {
        bytes piece = overlap_place(pieces, i, element).bytes;
        if (piece.size > 0 && piece.start < end)
            return false;
        end = piece.size > 0 ? piece.start + piece.size : end;
    }
    return true;
}

tutti_status tutti__pieces_apart(const tutti_comm_piece *pieces, int count, size_t element)
{
    if (lie_in_order(pieces, count, element))
        return TUTTI_OK;
    placed low, high, *list = malloc((size_t)count * sizeof *list);
    if (!list)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a list of %d tensors", count);
    int used = 0;
    for (int i = 0; i < count; i++)
        if (pieces[i].count > 0)
            list[used++] = overlap_place(pieces, i, element);
    qsort(list, (size_t)used, sizeof *list, by_address);
    bool found = find_overlap(list, used, &low, &high);
    free(list);
    if (!found)
        return TUTTI_OK;
    size_t apart = high.bytes.start - low.bytes.start;
    placed first = low.number < high.number ? low : high;
    placed second = low.number < high.number ? high : low;
    return tutti_fail(
        TUTTI_INVALID,
        "all_reduce of many tensors: numbers %d and %d overlap, of %zu and %zu bytes, "
        "%zu apart; give each memory of its own",
        first.number, second.number, first.bytes.size, second.bytes.size, apart);
}
