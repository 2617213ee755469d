/* gzip.c: see gzip.h. */
#include "io/gzip.h"

#include <stdlib.h>
#include <zlib.h>

bool tutti__gzip_is(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    return size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

static tutti_status fail_memory(const char *name)
{
    return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory to unpack it", name);
}

/* Room for the next piece: the buffer doubles, never beyond the limit. */
static tutti_status grow(const char *name, uint8_t **data, size_t *capacity, size_t limit)
{
    size_t next = *capacity ? *capacity * 2 : 1 << 16;
    next = next > limit ? limit : next;
    if (next <= *capacity)
        return tutti_fail(TUTTI_TOO_LARGE, "%s: unpacks to more than %zu bytes", name, limit);
    uint8_t *grown = realloc(*data, next + 1);
    if (!grown)
        return fail_memory(name);
    *data = grown;
    *capacity = next;
    return TUTTI_OK;
}

static tutti_status unpack(const char *name, z_stream *z, size_t limit, uint8_t **data,
                           size_t *ret_size)
{
    size_t capacity = 0, size = 0;
    for (;;) {
        if (size == capacity)
            TUTTI_TRY(grow(name, data, &capacity, limit));
        size_t room = capacity - size;
        z->next_out = *data + size;
        z->avail_out = room > (1u << 30) ? 1u << 30 : (uInt)room;
        uInt before = z->avail_out;
        int code = inflate(z, Z_NO_FLUSH);
        size += before - z->avail_out;
        if (code == Z_STREAM_END) {
            if (z->avail_in == 0)
                break;
            if (inflateReset(z) != Z_OK) /* a further member follows */
                return tutti_fail(TUTTI_CORRUPT, "%s: damaged gzip data", name);
        } else if (code == Z_MEM_ERROR) {
            return fail_memory(name);
        } else if (code != Z_OK || (z->avail_in == 0 && z->avail_out != 0)) {
            return tutti_fail(TUTTI_CORRUPT, "%s: damaged or truncated gzip data", name);
        }
    }
    *ret_size = size;
    return TUTTI_OK;
}

tutti_status tutti__gzip_unpack(const char *name, const void *data, size_t size, size_t limit,
                                void **ret_data, size_t *ret_size)
{
    z_stream z = {.next_in = (Bytef *)(uintptr_t)data, .avail_in = (uInt)size};
    uint8_t *out = NULL;
    if (size > UINT32_MAX)
        return tutti_fail(TUTTI_TOO_LARGE, "%s: too large to unpack at once", name);
    if (inflateInit2(&z, 15 + 16) != Z_OK)
        return fail_memory(name);
    tutti_status status = unpack(name, &z, limit, &out, ret_size);
    inflateEnd(&z);
    if (status != TUTTI_OK)
        free(out);
    else
        *ret_data = out;
    return status;
}
