/* shortage.h: for tests of what happens when memory runs out. All that the process could still get
 * is taken; given back piece by piece, it lets a call come further and further before it fails. */
#ifndef TUTTI_BASE_SHORTAGE_H
#define TUTTI_BASE_SHORTAGE_H

#include <limits.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/test.h"

typedef struct tutti_shortage_piece {
    struct tutti_shortage_piece *next;
} tutti_shortage_piece;

typedef struct tutti_shortage {
    struct rlimit limit;                     /* of before */
    tutti_shortage_piece *pieces, *reserved; /* the latter are given back first, side by side */
} tutti_shortage;

/* The stack cannot grow during a shortage either. */
static inline void tutti__shortage_stack(void)
{
    volatile char room[512 << 10];
    for (size_t i = 0; i < sizeof room; i += 1024)
        room[i] = 1;
}

static inline void tutti__shortage_take(tutti_shortage_piece **pieces, size_t size, int count)
{
    tutti_shortage_piece *piece;
    while (count-- > 0 && (piece = malloc(size))) {
        piece->next = *pieces;
        *pieces = piece;
    }
}

/* Ends the test under a sanitizer, whose own memory a shortage would take: before it has made
 * anything. */
static inline void tutti__shortage_or_skip(void)
{
    if (TUTTI_TEST_SANITIZED)
        SKIP("a sanitizer needs memory of its own");
}

static inline tutti_shortage tutti__shortage_begin(void)
{
    tutti_shortage shortage = {0};
    tutti__shortage_stack();
    tutti__shortage_take(&shortage.reserved, 512, 1024);
    CHECK_INT(getrlimit(RLIMIT_AS, &shortage.limit), 0);
    CHECK_INT(setrlimit(RLIMIT_AS, &(struct rlimit){0, shortage.limit.rlim_max}), 0);
    for (size_t size = (size_t)1 << 24; size > 2048; size /= 2)
        tutti__shortage_take(&shortage.pieces, size, INT_MAX);
    for (size_t size = 2048; size > 0; size -= 8)
        tutti__shortage_take(&shortage.pieces, size, INT_MAX);
    return shortage;
}

/* Gives a piece back; false when none is left. */
static inline bool tutti__shortage_ease(tutti_shortage *shortage)
{
    tutti_shortage_piece **list = shortage->reserved ? &shortage->reserved : &shortage->pieces;
    tutti_shortage_piece *piece = *list;
    if (piece)
        *list = piece->next;
    free(piece);
    return piece != NULL;
}

static inline void tutti__shortage_end(tutti_shortage *shortage)
{
    while (tutti__shortage_ease(shortage))
        continue;
    setrlimit(RLIMIT_AS, &shortage->limit);
}

#endif
