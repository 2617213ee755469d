/* overlap.c: see overlap.h. */
#include "comm/overlap.h"

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
