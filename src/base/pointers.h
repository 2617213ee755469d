/* pointers.h: a map from pointers to numbers, for lists that are asked where in them something
 * stands. Nothing is ever taken out, and there is no order. */
#ifndef TUTTI_BASE_POINTERS_H
#define TUTTI_BASE_POINTERS_H

#include "base/arena.h"
#include "base/status.h"

typedef struct tutti_pointers {
    tutti_arena *arena; /* where its memory is from; NULL: the heap */
    struct tutti_pointers_slot *slots;
    size_t count, slot_count; /* count: of numbers given */
} tutti_pointers;

/* A zeroed struct is a valid empty map. */

/* The number of `pointer`, not NULL; -1 where it has none. */
int64_t tutti__pointers_get(const tutti_pointers *map, const void *pointer);
/* Gives `pointer` a number, at least 0, in place of any that it had; false without memory: nothing
 * is changed. */
bool tutti__pointers_add(tutti_pointers *map, const void *pointer, int64_t number);
void tutti__pointers_free(tutti_pointers *map); /* not what is the arena's */

#endif
