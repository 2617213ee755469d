/* buffer.c: buffers, the host's memory, and the bytes of string elements. */
#include "tensor/buffer.h"

#include "base/memory.h"
#include "base/recycle.h"
#include "tensor/large.h"
#include "tensor/pending.h"

#include <stdlib.h>
#include <string.h>

/* Payloads below this are never packed: there is little to win. */
enum { SMALL_PAYLOAD = 4096 };

typedef struct tutti_payload {
    struct tutti_payload *next;
    char bytes[];
} tutti_payload;

/* What is not for large.h. */
static bool is_small(size_t padded)
{
    return padded < (size_t)256 << 10;
}

static tutti_status host_allocate(void *self, size_t size, void **ret)
{
    (void)self;
    if (size > PTRDIFF_MAX - TUTTI_HOST_ALIGNMENT)
        return tutti_fail(TUTTI_TOO_LARGE, "host memory: %zu bytes are more than can be addressed",
                          size);
    size_t padded = (size + TUTTI_HOST_ALIGNMENT - 1) / TUTTI_HOST_ALIGNMENT * TUTTI_HOST_ALIGNMENT;
    void *data = tutti__large_take(padded);
    if (data == NULL) {
        tutti__large_make_room(padded);
        data = is_small(padded) ? tutti__memory_exceeds(padded) ? NULL : tutti__recycle_take(padded)
                                : tutti__aligned_alloc(TUTTI_HOST_ALIGNMENT, padded);
    }
    if (data == NULL && tutti__memory_exceeds(padded))
        return tutti_fail(
            TUTTI_NO_MEMORY,
            "host memory: no room for %zu bytes: %lld of the %lld that the machine or "
            "the control group allows are taken; a smaller batch takes less",
            size, (long long)tutti__memory_now(), (long long)tutti__memory_limit());
    if (data == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "host memory: no room for %zu bytes", size);
    tutti__memory_count((int64_t)padded);
    *ret = data;
    return TUTTI_OK;
}

static void host_release(void *self, void *data, size_t size)
{
    (void)self;
    size_t padded = (size + TUTTI_HOST_ALIGNMENT - 1) / TUTTI_HOST_ALIGNMENT * TUTTI_HOST_ALIGNMENT;
    tutti__memory_count(-(int64_t)padded);
    if (is_small(padded))
        tutti__recycle_give(data, padded);
    else if (!tutti__large_keep(data, padded))
        free(data);
}

static tutti_status host_copy(void *self, void *to, const void *from, size_t size)
{
    (void)self;
    if (size > 0)
        memmove(to, from, size);
    return TUTTI_OK;
}

static const tutti_memory host_memory = {
    .name = "host",
    .allocate = host_allocate,
    .release = host_release,
    .copy_in = host_copy,
    .copy_out = host_copy,
    .host_visible = true,
    .alignment = TUTTI_HOST_ALIGNMENT,
};

const tutti_memory *tutti__host_memory(void)
{
    return &host_memory;
}

static tutti_status make_buffer(const tutti_memory *memory, size_t size, tutti_buffer **ret)
{
    tutti_buffer *buffer = tutti__recycle_take(sizeof *buffer);
    if (buffer == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "buffer: no memory for its header");
    *buffer = (tutti_buffer){.size = size, .memory = memory, .payload_limit = SMALL_PAYLOAD};
    atomic_init(&buffer->references, 1);
    *ret = buffer;
    return TUTTI_OK;
}

tutti_status tutti__buffer_create(const tutti_memory *memory, size_t size, tutti_buffer **ret)
{
    tutti_buffer *buffer = NULL;
    TUTTI_TRY(make_buffer(memory, size, &buffer));
    tutti_status status = memory->allocate(memory->self, size, &buffer->data);
    if (status != TUTTI_OK) {
        tutti__recycle_give(buffer, sizeof *buffer);
        return status;
    }
    *ret = buffer;
    return TUTTI_OK;
}

tutti_status tutti__buffer_wrap(const tutti_memory *memory, void *data, size_t size,
                                void (*release)(void *context), void *context, tutti_buffer **ret)
{
    tutti_buffer *buffer = NULL;
    TUTTI_TRY(make_buffer(memory, size, &buffer));
    buffer->data = data;
    buffer->borrowed = true;
    buffer->release = release;
    buffer->context = context;
    *ret = buffer;
    return TUTTI_OK;
}

tutti_buffer *tutti__buffer_retain(tutti_buffer *buffer)
{
    atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    return buffer;
}

static void free_payload(tutti_payload *payload)
{
    while (payload != NULL) {
        tutti_payload *next = payload->next;
        free(payload);
        payload = next;
    }
}

void tutti__buffer_release(tutti_buffer *buffer)
{
    if (buffer == NULL ||
        atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) > 1)
        return;
    tutti__buffer_forget(buffer);
    if (!buffer->borrowed)
        buffer->memory->release(buffer->memory->self, buffer->data, buffer->size);
    else if (buffer->release != NULL)
        buffer->release(buffer->context);
    free_payload(buffer->payload);
    tutti__recycle_give(buffer, sizeof *buffer);
}

bool tutti__buffer_unique(const tutti_buffer *buffer)
{
    return atomic_load_explicit(&buffer->references, memory_order_acquire) == 1;
}

tutti_status tutti__buffer_add_bytes(tutti_buffer *buffer, size_t size, char **ret_bytes)
{
    if (size > PTRDIFF_MAX - sizeof(tutti_payload))
        return tutti_fail(TUTTI_TOO_LARGE,
                          "string tensor: %zu bytes are more than can be addressed", size);
    tutti_payload *payload = malloc(sizeof *payload + size);
    if (payload == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "string tensor: no memory for %zu bytes of text", size);
    payload->next = buffer->payload;
    buffer->payload = payload;
    buffer->payload_size += sizeof *payload + size;
    *ret_bytes = payload->bytes;
    return TUTTI_OK;
}

/* A failure to find memory leaves the payload as it was: too large, but right. */
void tutti__buffer_pack(tutti_buffer *buffer)
{
    if (!buffer->strings || buffer->payload_size <= buffer->payload_limit)
        return;
    tutti_string *elements = buffer->data;
    size_t count = buffer->size / sizeof *elements, live = 0;
    for (size_t i = 0; i < count; i++)
        live += (size_t)elements[i].size;
    buffer->payload_limit = 2 * live + SMALL_PAYLOAD;
    if (buffer->payload_size <= buffer->payload_limit)
        return;
    tutti_payload *packed = malloc(sizeof *packed + live);
    if (packed == NULL)
        return;
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (elements[i].size > 0)
            memcpy(packed->bytes + used, elements[i].data, (size_t)elements[i].size);
        elements[i].data = packed->bytes + used;
        used += (size_t)elements[i].size;
    }
    free_payload(buffer->payload);
    packed->next = NULL;
    buffer->payload = packed;
    buffer->payload_size = sizeof *packed + live;
}
