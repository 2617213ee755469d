/* arena.c: memory of one rank in the segment that all ranks of the machine can reach. First fit;
 * the book of free and taken pieces is this rank's own. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "comm/fabric/segment.h"

struct tutti_free {
    struct tutti_free *next;
    uint64_t offset, bytes;
};

enum { GRAIN = 4096 };

static bool first_use(tutti_segment *segment)
{
    if (segment->arena_free || segment->arena_taken)
        return true;
    struct tutti_free *all = malloc(sizeof *all);
    if (!all)
        return false;
    *all = (struct tutti_free){.offset = segment->arena_offset, .bytes = segment->arena_bytes};
    segment->arena_free = all;
    return true;
}

/* Cuts `bytes` off the first piece that is large enough. */
static struct tutti_free *arena_cut(tutti_segment *segment, uint64_t bytes)
{
    struct tutti_free **at = &segment->arena_free;
    while (*at && (*at)->bytes < bytes)
        at = &(*at)->next;
    struct tutti_free *found = *at;
    if (!found)
        return NULL;
    if (found->bytes == bytes) {
        *at = found->next;
        return found;
    }
    struct tutti_free *piece = malloc(sizeof *piece);
    if (!piece)
        return NULL;
    *piece = (struct tutti_free){.offset = found->offset, .bytes = bytes};
    found->offset += bytes;
    found->bytes -= bytes;
    return piece;
}

/* Into the sorted list, joined with its neighbours. */
static void put_back(tutti_segment *segment, struct tutti_free *piece)
{
    struct tutti_free **at = &segment->arena_free, *before = NULL;
    while (*at && (*at)->offset < piece->offset) {
        before = *at;
        at = &(*at)->next;
    }
    piece->next = *at;
    *at = piece;
    struct tutti_free *after = piece->next;
    if (after && piece->offset + piece->bytes == after->offset) {
        piece->bytes += after->bytes;
        piece->next = after->next;
        free(after);
    }
    if (before && before->offset + before->bytes == piece->offset) {
        before->bytes += piece->bytes;
        before->next = piece->next;
        free(piece);
    }
}

void *tutti__arena_allocate(tutti_segment *segment, int64_t bytes, bool *ret_spent)
{
    *ret_spent = false;
    if (bytes < 0 || (uint64_t)bytes > segment->arena_bytes)
        return NULL;
    uint64_t size = ((uint64_t)bytes + GRAIN) / GRAIN * GRAIN;
    void *memory = NULL;
    pthread_mutex_lock(&segment->arena_lock);
    struct tutti_free *piece = first_use(segment) ? arena_cut(segment, size) : NULL;
    if (piece && !tutti__segment_reserve(segment, piece->offset, piece->bytes)) {
        put_back(segment, piece);
        *ret_spent = true;
    } else if (piece) {
        piece->next = segment->arena_taken;
        segment->arena_taken = piece;
        memory = segment->base + piece->offset;
    }
    pthread_mutex_unlock(&segment->arena_lock);
    return memory;
}

bool tutti__arena_owns(const tutti_segment *segment, const void *memory)
{
    return (const char *)memory >= segment->base &&
           (const char *)memory < segment->base + segment->bytes;
}

bool tutti__arena_give_back(tutti_segment *segment, void *memory)
{
    uint64_t offset = (uint64_t)((char *)memory - segment->base);
    pthread_mutex_lock(&segment->arena_lock);
    struct tutti_free **at = &segment->arena_taken;
    while (*at && (*at)->offset != offset)
        at = &(*at)->next;
    struct tutti_free *piece = *at;
    if (piece) {
        *at = piece->next;
        /* Pages go back to the system, and are zero when they are taken again. */
        if (madvise(memory, piece->bytes, segment->one_process ? MADV_DONTNEED : MADV_REMOVE) != 0)
            memset(memory, 0, piece->bytes);
        put_back(segment, piece);
    }
    pthread_mutex_unlock(&segment->arena_lock);
    return piece != NULL;
}

static void free_list(struct tutti_free *piece)
{
    while (piece) {
        struct tutti_free *next = piece->next;
        free(piece);
        piece = next;
    }
}

void tutti__segment_close(tutti_segment *segment)
{
    if (!segment)
        return;
    atomic_store(&tutti__segment_place(segment, segment->rank)->gone, 1);
    free_list(segment->arena_free);
    free_list(segment->arena_taken);
    pthread_mutex_destroy(&segment->arena_lock);
    tutti__segment_unback(segment);
    if (segment->mapped)
        munmap(segment->base, segment->bytes);
    free(segment);
}
