/* memory.h: memory that host code cannot touch, for devices that stand in for real accelerators.
 *
 * Invariants:
 *  1. A region is one memory file, mapped several times. What the world sees of it, the address in
 *     tensors, is a reservation without access: following it ends the process.
 *  2. Only code of the device translates such an address, into the mapping for reading or the one
 *     for writing. Everything else goes through copy_in and copy_out.
 *  3. A region that is made for a run has one more pair of mappings per stream, all without access:
 *     the stream opens what its instruction may read and write, and closes it afterwards.
 *  4. Copies come after all that was put on the device's streams before, and memory that is let go
 *     stays until all that is done. */
#ifndef TUTTI_DEVICE_FAR_MEMORY_H
#define TUTTI_DEVICE_FAR_MEMORY_H

#include <pthread.h>

#include "device/far/streams.h"
#include "tensor/buffer.h"

/* A multiple of every page size that Linux has on x86_64 and aarch64, so that values in an arena
 * never share a page. Pages in between are never touched and cost nothing. */
#define TUTTI_FAR_ALIGNMENT 65536

#define TUTTI_FAR_MOST_STREAMS 8

typedef struct tutti_far_region {
    struct tutti_far_region *next;
    struct tutti_far_memory *memory;
    size_t size;        /* bytes, whole pages */
    char *device;       /* what the world sees */
    char *read, *write; /* what it stands for */
    int stream_count;
    char *stream_read[TUTTI_FAR_MOST_STREAMS]; /* closed but for the instruction that runs */
    char *stream_write[TUTTI_FAR_MOST_STREAMS];
} tutti_far_region;

typedef struct tutti_far_memory {
    tutti_memory memory; /* its self points here */
    char name[64];
    tutti_far_streams *streams; /* of its device, or NULL */
    pthread_mutex_t lock;
    tutti_far_region *regions; /* under the lock */
} tutti_far_memory;

tutti_status tutti__far_memory_create(const char *name, tutti_far_streams *streams,
                                      tutti_far_memory **ret);
void tutti__far_memory_destroy(tutti_far_memory *memory); /* with its regions; NULL is fine */

/* A region of at least `size` bytes of zeros, with closed mappings for so many streams. */
tutti_status tutti__far_region_create(tutti_far_memory *memory, size_t size, int stream_count,
                                      tutti_far_region **ret);
void tutti__far_region_destroy(tutti_far_memory *memory,
                               tutti_far_region *region); /* NULL is fine */

/* The region that holds `size` bytes from a device address, and where in it they begin. INVALID
 * when no region does. Valid as long as whoever owns the memory keeps it. */
tutti_status tutti__far_find(tutti_far_memory *memory, const void *device, size_t size,
                             const tutti_far_region **ret_region, size_t *ret_offset);

typedef enum tutti_far_access {
    TUTTI_FAR_CLOSED,
    TUTTI_FAR_READ,
    TUTTI_FAR_WRITE
} tutti_far_access;
/* Changes what may be done to `size` bytes of a stream's mapping; `at` lies at the beginning of a
 * page. */
void tutti__far_protect(char *at, size_t size, tutti_far_access access);

#endif
