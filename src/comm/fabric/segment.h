/* segment.h: memory that ranks of one machine share: streams between each pair, bells to wake each
 * other, areas for direct collectives, and an arena each.
 *
 * Layout: [header][places][rings][heap]. Offsets are from the segment's start, because processes
 * may map it at different addresses. The file behind it has holes: what is handed out is reserved
 * first (reserve.c), so that a file system that is full is an error and not the end of a process.
 *
 * Waking: a rank that is about to sleep on its bell adds itself to `sleeping` and then looks once
 * more; a rank that made something visible then looks at `sleeping` of those who may wait for it.
 * Both put a full fence between. */
#ifndef TUTTI_COMM_FABRIC_SEGMENT_H
#define TUTTI_COMM_FABRIC_SEGMENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "comm/fabric/abort_flag.h"
#include "comm/fabric/calls.h"
#include "comm/fabric/engine.h"

enum { TUTTI_LINE = 128 }; /* bytes that two ranks should not share */

/* One for each rank. */
typedef struct tutti_segment_place {
    _Alignas(TUTTI_LINE) atomic_uint bell;
    atomic_uint sleeping;
    atomic_int gone; /* the rank has detached */
    tutti_calls calls;
} tutti_segment_place;

/* Bytes from one rank to another: positions only grow. */
typedef struct tutti_ring {
    _Alignas(TUTTI_LINE) _Atomic uint64_t written;
    _Alignas(TUTTI_LINE) _Atomic uint64_t read;
    _Alignas(TUTTI_LINE) char data[];
} tutti_ring;

enum { TUTTI_SEGMENT_PIECES = 1024 }; /* most areas at a time */

typedef struct tutti_common_piece {
    uint64_t offset, bytes;
} tutti_common_piece;

typedef struct tutti_segment_header {
    uint64_t magic;
    int32_t size;
    uint32_t ring_bytes;
    uint64_t rings, heap, end; /* offsets */
    atomic_int heap_lock;      /* 1: a rank changes `pieces`, and has died if that lasts */
    int32_t piece_count;
    tutti_common_piece pieces[TUTTI_SEGMENT_PIECES]; /* that are taken, sorted by offset */
    tutti_abort_flag abort_flag;
} tutti_segment_header;

struct tutti_segment {
    tutti_segment_header *header;
    char *base;
    size_t bytes;
    int rank, size;                     /* within the segment */
    bool one_process;                   /* any pointer of one rank is good for the others */
    bool mapped;                        /* to be unmapped by this rank */
    uint64_t arena_offset, arena_bytes; /* own */
    struct tutti_free *arena_free;      /* own, sorted by offset */
    struct tutti_free *arena_taken;
    pthread_mutex_t arena_lock;
    int file;                  /* of the memory, for tutti__segment_reserve; -1: it is none */
    uint64_t device, inode;    /* of `file`: programs close descriptors that are not theirs */
    bool *sending, *receiving; /* [size]: the stream's memory is reserved; NULL without a file */
};

/* How large a segment is, and making one in zeroed memory of that size. */
size_t tutti__segment_bytes(int size, int64_t arena_bytes);
/* For messages, where it finds no place among the addresses. */
#define TUTTI_ADDRESS_HINT                                                                          \
    "these are addresses, of which most are never used: lift their limit ('ulimit -v unlimited'), " \
    "or give a smaller .arena_bytes (1 GiB of them for each rank where nothing is said)"
void tutti__segment_format(void *memory, size_t bytes, int size);
/* One rank's view of formatted memory. */
tutti_status tutti__segment_open(void *memory, size_t bytes, int rank, bool one_process,
                                 bool mapped, int64_t arena_bytes, tutti_segment **ret_segment);
void tutti__segment_close(tutti_segment *segment); /* NULL is fine */
/* Bytes at its start without which there is no segment; with all streams. */
uint64_t tutti__segment_least(int size);
uint64_t tutti__segment_control(int size);

/* Takes the file that the memory is of: closed with the segment, or at once where this fails. */
tutti_status tutti__segment_back(tutti_segment *segment, int file);
void tutti__segment_unback(tutti_segment *segment);
/* Pages of a file, so that touching them cannot fail; false, with errno, where there is no room. */
bool tutti__file_reserve(int file, uint64_t offset, uint64_t bytes);
/* The same of the segment's file; true without one. */
bool tutti__segment_reserve(tutti_segment *segment, uint64_t offset, uint64_t bytes);

tutti_segment_place *tutti__segment_place(const tutti_segment *segment, int rank);
tutti_ring *tutti__segment_ring(const tutti_segment *segment, int from, int to);
/* Memory for all ranks, zeroed unless it was used before; 0 when the segment is full. Any rank may
 * give it back, once nobody uses it any more. */
uint64_t tutti__segment_take(tutti_segment *segment, size_t bytes);
void tutti__segment_give_back(tutti_segment *segment, uint64_t offset);

/* After something was made visible. */
void tutti__segment_wake(tutti_segment *segment, int rank);
/* Sleep on the own bell, until it rings or `ns` have passed. `seen` is the bell before the last
 * look. */
unsigned tutti__segment_sleep_begin(tutti_segment *segment);
void tutti__segment_sleep_end(tutti_segment *segment, unsigned seen, int64_t ns);

/* Streams over rings, for engines: `state` is the segment, peers are its ranks. */
tutti_status tutti__ring_send(tutti_segment *segment, int peer, const struct iovec *parts,
                              int count, size_t *ret_done);
tutti_status tutti__ring_recv(tutti_segment *segment, int peer, void *data, size_t size,
                              size_t *ret_done);

/* The own arena. NULL when it is full, or, with *ret_spent, when the system has no shared memory
 * for it any more: private memory will do. */
void *tutti__arena_allocate(tutti_segment *segment, int64_t bytes, bool *ret_spent);
/* Whether it lies in the segment: private memory does not. */
bool tutti__arena_owns(const tutti_segment *segment, const void *memory);
/* False when `memory` is not from there. */
bool tutti__arena_give_back(tutti_segment *segment, void *memory);
/* Whether the others can reach these bytes. */
bool tutti__segment_holds(const tutti_segment *segment, const void *data, size_t bytes);

#endif
