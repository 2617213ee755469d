/* placement.c: which slot a shard lies on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/store/partition.h"

tutti_status tutti__store_placement_create(const char *name, tutti_store_place_fn *fn,
                                           void *context, int slots,
                                           tutti_store_placement *ret_placement)
{
    static const char *const names[] = {"round_robin", "least_loaded"};
    tutti_store_placement made = {.name = NULL, .fn = fn, .context = context, .slots = slots};
    for (size_t i = 0; i < TUTTI_COUNT(names); i++)
        if (strcmp(name, names[i]) == 0 || (i == 0 && name[0] == '\0'))
            made.name = names[i];
    if (fn)
        made.name = "function";
    if (!made.name)
        return tutti_fail(TUTTI_INVALID,
                          "there is no placement '%s'; there are: round_robin, least_loaded", name);
    if (slots < 1)
        return tutti_fail(TUTTI_INVALID, "variables cannot be placed on %d servers", slots);
    made.load = calloc((size_t)slots, sizeof *made.load);
    if (!made.load)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %d servers", slots);
    *ret_placement = made;
    return TUTTI_OK;
}

void tutti__store_placement_free(tutti_store_placement *placement)
{
    free(placement->load);
    *placement = (tutti_store_placement){0};
}

static int least_loaded(const tutti_store_placement *p)
{
    int least = 0;
    for (int i = 1; i < p->slots; i++)
        if (p->load[i].bytes < p->load[least].bytes)
            least = i;
    return least;
}

tutti_status tutti__store_placement_next(tutti_store_placement *p, const char *shard, int64_t bytes,
                                         int *ret_slot)
{
    int slot = p->fn                                  ? p->fn(shard, bytes, p->slots, p->context)
               : strcmp(p->name, "least_loaded") == 0 ? least_loaded(p)
                                                      : p->next;
    if (slot < 0 || slot >= p->slots)
        return tutti_fail(TUTTI_OUT_OF_RANGE,
                          "the placement function gives server %d for '%s'; there are 0 to %d",
                          slot, shard, p->slots - 1);
    p->next = (p->next + 1) % p->slots;
    p->load[slot].bytes += bytes;
    p->load[slot].shards++;
    *ret_slot = slot;
    return TUTTI_OK;
}

void tutti__store_placement_print(const tutti_store_placement *p, char *text, size_t size)
{
    size_t used = 0;
    if (size > 0)
        text[0] = '\0';
    for (int i = 0; i < p->slots && used < size; i++) {
        int wrote =
            snprintf(text + used, size - used, "%sps %d: %d shards, %.1f MiB", i > 0 ? "   " : "",
                     i, p->load[i].shards, (double)p->load[i].bytes / (1 << 20));
        used += wrote > 0 ? (size_t)wrote : 0;
    }
}
