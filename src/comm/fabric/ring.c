/* ring.c: a stream of bytes between two ranks in shared memory: one writer, one reader. */
#include <errno.h>
#include <string.h>

#include "comm/fabric/segment.h"

static void copy_in(tutti_ring *ring, uint32_t bytes, uint64_t at, const char *data, size_t size)
{
    size_t offset = at & (bytes - 1), first = bytes - offset < size ? bytes - offset : size;
    memcpy(ring->data + offset, data, first);
    memcpy(ring->data, data + first, size - first);
}

static void copy_out(const tutti_ring *ring, uint32_t bytes, uint64_t at, char *data, size_t size)
{
    size_t offset = at & (bytes - 1), first = bytes - offset < size ? bytes - offset : size;
    memcpy(data, ring->data + offset, first);
    memcpy(data + first, ring->data, size - first);
}

/* Before its memory is touched for the first time, by whichever side. */
static tutti_status reserve(tutti_segment *segment, const tutti_ring *ring, bool *ret_there)
{
    uint64_t offset = (uint64_t)((const char *)ring - segment->base);
    if (!tutti__segment_reserve(segment, offset, sizeof *ring + segment->header->ring_bytes))
        return tutti_fail(TUTTI_NO_MEMORY,
                          "the system has no shared memory left for a stream of %u bytes between "
                          "two ranks: %s; make /dev/shm larger, or use the engine tcp",
                          segment->header->ring_bytes, strerror(errno));
    *ret_there = true;
    return TUTTI_OK;
}

/* A long message is shown to the reader piece by piece, so that both copy at the same time. */
enum { PIECE = 16 << 10 };

tutti_status tutti__ring_send(tutti_segment *segment, int peer, const struct iovec *parts,
                              int count, size_t *ret_done)
{
    tutti_ring *ring = tutti__segment_ring(segment, segment->rank, peer);
    if (segment->sending && !segment->sending[peer])
        TUTTI_TRY(reserve(segment, ring, &segment->sending[peer]));
    uint32_t bytes = segment->header->ring_bytes;
    uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
    uint64_t room = bytes - (written - atomic_load_explicit(&ring->read, memory_order_acquire));
    uint64_t start = written;
    for (int i = 0; i < count && room > 0; i++) {
        const char *data = parts[i].iov_base;
        size_t left = parts[i].iov_len < room ? parts[i].iov_len : room;
        room -= left;
        while (left > 0) {
            size_t size = left < PIECE ? left : PIECE;
            copy_in(ring, bytes, written, data, size);
            written += size, data += size, left -= size;
            if (left > 0)
                atomic_store_explicit(&ring->written, written, memory_order_release);
        }
    }
    *ret_done = written - start;
    if (written == start)
        return TUTTI_OK;
    atomic_store_explicit(&ring->written, written, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    tutti__segment_wake(segment, peer);
    return TUTTI_OK;
}

tutti_status tutti__ring_recv(tutti_segment *segment, int peer, void *data, size_t size,
                              size_t *ret_done)
{
    tutti_ring *ring = tutti__segment_ring(segment, peer, segment->rank);
    if (segment->receiving && !segment->receiving[peer])
        TUTTI_TRY(reserve(segment, ring, &segment->receiving[peer]));
    uint32_t bytes = segment->header->ring_bytes;
    uint64_t read = atomic_load_explicit(&ring->read, memory_order_relaxed);
    uint64_t there = atomic_load_explicit(&ring->written, memory_order_acquire) - read;
    if (there > bytes)
        return tutti_fail(TUTTI_CORRUPT, "a stream in shared memory was written over");
    size_t take = there < size ? there : size;
    *ret_done = take;
    if (take == 0)
        return TUTTI_OK;
    for (size_t done = 0; done < take;) {
        size_t piece = take - done < PIECE ? take - done : PIECE;
        copy_out(ring, bytes, read, (char *)data + done, piece);
        read += piece, done += piece;
        atomic_store_explicit(&ring->read, read, memory_order_release);
    }
    if (there >= bytes / 2) { /* the writer sleeps only when it found no room */
        atomic_thread_fence(memory_order_seq_cst);
        tutti__segment_wake(segment, peer);
    }
    return TUTTI_OK;
}
