/* pointers.c: see pointers.h. Open addressing; slot_count is 0 or a power of two, and more than
 * half of the slots are empty, so that a probe ends. */
#include "base/pointers.h"

#include <stdlib.h>

#include "base/container.h"

struct tutti_pointers_slot {
    const void *pointer; /* NULL: empty */
    int64_t number;
};

/* The slot that holds `pointer`, or the empty one where it belongs. slot_count > 0. */
static struct tutti_pointers_slot *pointers_find(const tutti_pointers *map, const void *pointer)
{
    size_t mask = map->slot_count - 1;
    size_t at = (size_t)tutti__hash_mix(0, (uint64_t)(uintptr_t)pointer) & mask;
    while (map->slots[at].pointer != NULL && map->slots[at].pointer != pointer)
        at = (at + 1) & mask;
    return &map->slots[at];
}

static bool grow(tutti_pointers *map)
{
    tutti_pointers more = {.arena = map->arena, .count = map->count};
    more.slot_count = map->slot_count == 0 ? 16 : 2 * map->slot_count;
    more.slots = map->arena != NULL
                     ? tutti__arena_array(map->arena, more.slot_count, sizeof *more.slots)
                     : calloc(more.slot_count, sizeof *more.slots);
    if (more.slots == NULL)
        return false;
    for (size_t i = 0; i < map->slot_count; i++)
        if (map->slots[i].pointer != NULL)
            *pointers_find(&more, map->slots[i].pointer) = map->slots[i];
    struct tutti_pointers_slot *before = map->slots;
    map->slots = more.slots;
    map->slot_count = more.slot_count;
    if (map->arena == NULL)
        free(before);
    return true;
}

int64_t tutti__pointers_get(const tutti_pointers *map, const void *pointer)
{
    if (map->count == 0)
        return -1;
    const struct tutti_pointers_slot *slot = pointers_find(map, pointer);
    return slot->pointer != NULL ? slot->number : -1;
}

bool tutti__pointers_add(tutti_pointers *map, const void *pointer, int64_t number)
{
    if (2 * (map->count + 1) >= map->slot_count && !grow(map))
        return false;
    *pointers_find(map, pointer) = (struct tutti_pointers_slot){pointer, number};
    map->count++;
    return true;
}

void tutti__pointers_free(tutti_pointers *map)
{
    if (map->arena == NULL)
        free(map->slots);
    *map = (tutti_pointers){.arena = map->arena};
}
