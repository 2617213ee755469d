/* buffer.h: reference-counted memory, and the table through which any kind of memory is reached.
 *
 * Invariants:
 *  1. A buffer holds at least one reference; the last one gives the memory back.
 *  2. Elements of string tensors are tutti_string structs in the buffer's memory. The bytes they
 *     point to belong to the buffer (its payload) and go with it. An element may for a while point
 *     elsewhere (kernels move elements, not bytes): tutti__tensor_own_strings ends that.
 *  3. A payload only grows while elements are set; when more than half of it is dead, it is packed
 *     anew, which moves the bytes of all elements of the buffer. */
#ifndef TUTTI_TENSOR_BUFFER_H
#define TUTTI_TENSOR_BUFFER_H

#include "tutti/tensor.h"

#include <stdatomic.h>

/* A kind of memory. Every slot may be called from any thread. */
typedef struct tutti_memory {
    const char *name; /* "host", "far:0": for messages */
    /* Memory of at least `size` bytes (0 too), aligned to `alignment`, contents undefined. */
    tutti_status (*allocate)(void *self, size_t size, void **ret);
    void (*release)(void *self, void *data, size_t size);
    /* Between this memory and the host's; done when they return. (optional where host_visible) */
    tutti_status (*copy_in)(void *self, void *device_data, const void *host, size_t size);
    tutti_status (*copy_out)(void *self, void *host, const void *device_data, size_t size);
    /* (optional) Inside this memory, without the host; comes after all that was enqueued on its
     * device, and before all that will be. */
    tutti_status (*copy_within)(void *self, void *to, const void *from, size_t size);
    bool host_visible; /* host code may follow its pointers */
    size_t alignment;  /* bytes, a power of two */
    void *self;
} tutti_memory;

/* The host's own memory, aligned to 64 bytes and padded to a multiple of 64. */
#define TUTTI_HOST_ALIGNMENT 64
const tutti_memory *tutti__host_memory(void);

struct tutti_payload; /* a chunk of string bytes */
struct tutti_pending;

typedef struct tutti_buffer {
    atomic_int references;
    _Atomic(struct tutti_pending *) pending; /* what data will be: pending.h; NULL: it is there */
    void *data;
    size_t size; /* bytes */
    const tutti_memory *memory;
    bool borrowed;                  /* `release` gives it back, not `memory` */
    void (*release)(void *context); /* (optional) of a borrowed buffer */
    void *context;
    bool strings; /* nothing but tutti_string elements in it */
    struct tutti_payload *payload;
    size_t payload_size, payload_limit; /* bytes held; packed anew beyond the limit */
} tutti_buffer;

/* New memory, contents undefined, one reference. */
tutti_status tutti__buffer_create(const tutti_memory *memory, size_t size, tutti_buffer **ret);
/* Over memory that somebody else owns; release (optional) runs with the last reference. */
tutti_status tutti__buffer_wrap(const tutti_memory *memory, void *data, size_t size,
                                void (*release)(void *context), void *context, tutti_buffer **ret);
tutti_buffer *tutti__buffer_retain(tutti_buffer *buffer);
void tutti__buffer_release(tutti_buffer *buffer);      /* NULL is fine */
bool tutti__buffer_unique(const tutti_buffer *buffer); /* exactly one reference */

/* `size` bytes that live as long as the buffer. Not thread-safe. */
tutti_status tutti__buffer_add_bytes(tutti_buffer *buffer, size_t size, char **ret_bytes);
/* Packs the payload when most of it is dead; to be called when all elements are in place. */
void tutti__buffer_pack(tutti_buffer *buffer);

#endif
