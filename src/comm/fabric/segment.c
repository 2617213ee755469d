/* segment.c: layout of shared memory, bells, and where things are. */
#include "comm/fabric/segment.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/world.h"

#define MAGIC UINT64_C(0x7475747469736d33)
enum {
    RINGS_BYTES = 64 << 20, /* all rings together, if that gives each enough */
    RING_LEAST = 8 << 10,
    RING_MOST = 1 << 18,
    COMMON_HEAP = 64 << 20, /* for the areas of groups */
};

static uint64_t round_up(uint64_t value, uint64_t to)
{
    return (value + to - 1) / to * to;
}

static uint32_t ring_bytes(int size)
{
    uint64_t each = (uint64_t)RINGS_BYTES / ((uint64_t)size * (uint64_t)size), bytes = RING_MOST;
    while (bytes > each && bytes > RING_LEAST)
        bytes /= 2;
    return (uint32_t)bytes;
}

uint64_t tutti__segment_least(int size)
{
    return round_up(sizeof(tutti_segment_header), TUTTI_LINE) +
           (uint64_t)size * sizeof(tutti_segment_place);
}

static uint64_t heap_offset(int size)
{
    uint64_t pairs = (uint64_t)size * (uint64_t)size;
    return round_up(tutti__segment_least(size) + pairs * (sizeof(tutti_ring) + ring_bytes(size)),
                    4096);
}

uint64_t tutti__segment_control(int size)
{
    return heap_offset(size);
}

/* A group's area is about 3 MiB for each rank (direct.h); groups of all sizes find room. */
static uint64_t common_bytes(int size)
{
    return COMMON_HEAP + (uint64_t)size * (16u << 20);
}

size_t tutti__segment_bytes(int size, int64_t arena_bytes)
{
    return heap_offset(size) + common_bytes(size) +
           (uint64_t)size * round_up((uint64_t)arena_bytes, 4096);
}

void tutti__segment_format(void *memory, size_t bytes, int size)
{
    tutti_segment_header *header = memory;
    header->size = size;
    header->ring_bytes = ring_bytes(size);
    header->rings = tutti__segment_least(size);
    header->heap = heap_offset(size);
    header->end = bytes;
    header->magic = MAGIC;
}

tutti_status tutti__segment_open(void *memory, size_t bytes, int rank, bool one_process,
                                 bool mapped, int64_t arena_bytes, tutti_segment **ret_segment)
{
    tutti_segment_header *header = memory;
    if (header->magic != MAGIC || header->end != bytes || rank < 0 || rank >= header->size)
        return tutti_fail(TUTTI_CORRUPT,
                          "the shared memory is not of this job: it is marked for "
                          "%d ranks; remove it from /dev/shm and start again",
                          header->size);
    tutti_segment *segment = calloc(1, sizeof *segment);
    if (!segment)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a view of shared memory");
    *segment = (tutti_segment){.header = header,
                               .base = memory,
                               .bytes = bytes,
                               .rank = rank,
                               .size = header->size,
                               .one_process = one_process,
                               .mapped = mapped,
                               .file = -1};
    segment->arena_bytes = round_up((uint64_t)arena_bytes, 4096);
    segment->arena_offset =
        header->heap + common_bytes(header->size) + (uint64_t)rank * segment->arena_bytes;
    pthread_mutex_init(&segment->arena_lock, NULL);
    *ret_segment = segment;
    return TUTTI_OK;
}

tutti_segment_place *tutti__segment_place(const tutti_segment *segment, int rank)
{
    char *first = segment->base + round_up(sizeof(tutti_segment_header), TUTTI_LINE);
    return (tutti_segment_place *)(void *)first + rank;
}

tutti_ring *tutti__segment_ring(const tutti_segment *segment, int from, int to)
{
    size_t each = sizeof(tutti_ring) + segment->header->ring_bytes;
    size_t number = (size_t)from * (size_t)segment->size + (size_t)to;
    return (tutti_ring *)(void *)(segment->base + segment->header->rings + number * each);
}

/* False when somebody has it for longer than the few lines below take: he is stopped or dead, and
 * the heap stays as it is. */
static bool lock_heap(tutti_segment_header *header)
{
    int64_t until = tutti__now_ns() + 1000000000;
    int none = 0;
    while (!atomic_compare_exchange_weak(&header->heap_lock, &none, 1)) {
        none = 0;
        if (tutti__now_ns() > until)
            return false;
        sched_yield();
    }
    return true;
}

/* The first gap that is large enough. */
uint64_t tutti__segment_take(tutti_segment *segment, size_t bytes)
{
    tutti_segment_header *header = segment->header;
    uint64_t size = round_up(bytes, 4096), offset = header->heap;
    uint64_t limit = header->heap + common_bytes(segment->size);
    if (!lock_heap(header))
        return 0;
    tutti_common_piece *at = header->pieces, *end = at + header->piece_count;
    for (; at < end && at->offset - offset < size; at++)
        offset = at->offset + at->bytes;
    if (header->piece_count == TUTTI_SEGMENT_PIECES || offset + size > limit ||
        !tutti__segment_reserve(segment, offset, size)) {
        offset = 0;
    } else {
        memmove(at + 1, at, (size_t)(end - at) * sizeof *at);
        *at = (tutti_common_piece){offset, size};
        header->piece_count++;
    }
    atomic_store(&header->heap_lock, 0);
    return offset;
}

void tutti__segment_give_back(tutti_segment *segment, uint64_t offset)
{
    tutti_segment_header *header = segment->header;
    if (!lock_heap(header))
        return;
    tutti_common_piece *at = header->pieces, *end = at + header->piece_count;
    while (at < end && at->offset != offset)
        at++;
    if (at < end) {
        memmove(at, at + 1, (size_t)(end - at - 1) * sizeof *at);
        header->piece_count--;
    }
    atomic_store(&header->heap_lock, 0);
}

static long futex(atomic_uint *word, int operation, unsigned value, const struct timespec *timeout)
{
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

void tutti__segment_wake(tutti_segment *segment, int rank)
{
    tutti_segment_place *place = tutti__segment_place(segment, rank);
    if (atomic_load_explicit(&place->sleeping, memory_order_relaxed) == 0)
        return;
    atomic_fetch_add(&place->bell, 1);
    futex(&place->bell, FUTEX_WAKE, INT_MAX, NULL);
}

unsigned tutti__segment_sleep_begin(tutti_segment *segment)
{
    tutti_segment_place *place = tutti__segment_place(segment, segment->rank);
    atomic_fetch_add(&place->sleeping, 1);
    unsigned seen = atomic_load(&place->bell);
    atomic_thread_fence(memory_order_seq_cst);
    return seen;
}

void tutti__segment_sleep_end(tutti_segment *segment, unsigned seen, int64_t ns)
{
    tutti_segment_place *place = tutti__segment_place(segment, segment->rank);
    struct timespec timeout = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    if (ns > 0)
        futex(&place->bell, FUTEX_WAIT, seen, &timeout);
    atomic_fetch_sub(&place->sleeping, 1);
}

bool tutti__segment_holds(const tutti_segment *segment, const void *data, size_t bytes)
{
    if (segment->one_process)
        return true;
    const char *start = data;
    return start >= segment->base + segment->header->heap &&
           start <= segment->base + segment->bytes &&
           bytes <= (size_t)(segment->base + segment->bytes - start);
}
