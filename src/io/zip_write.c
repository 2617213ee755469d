/* zip_write.c: the writer. A member's header is written with sizes left open, in 64 bits, and
 * filled in when the member ends. Times are fixed, so that equal contents give equal bytes. */
#include <stdlib.h>
#include <string.h>

#include "io/zip.h"

#define VERSION 45      /* zip64 */
#define DATE 0x21       /* the first of January 1980 */
#define UTF8_NAMES 2048 /* flag */
#define LOCAL_EXTRA 20  /* kind, length, two sizes */

tutti_status tutti__zip_begin(tutti_sink *sink, tutti_zip_writer *ret_writer)
{
    *ret_writer = (tutti_zip_writer){.sink = sink};
    return TUTTI_OK;
}

/* Fields that both kinds of header share, from `version needed` on: 26 bytes. */
static void put_common(uint8_t *p, const tutti_zip_writer *w, uint32_t packed, uint32_t size,
                       size_t name, size_t extra)
{
    tutti__put_u16(p, VERSION);
    tutti__put_u16(p + 2, UTF8_NAMES);
    tutti__put_u16(p + 4, w->compress ? 8 : 0);
    tutti__put_u16(p + 6, 0);
    tutti__put_u16(p + 8, DATE);
    tutti__put_u32(p + 10, w->crc);
    tutti__put_u32(p + 14, packed);
    tutti__put_u32(p + 18, size);
    tutti__put_u16(p + 22, (uint16_t)name);
    tutti__put_u16(p + 24, (uint16_t)extra);
}

static tutti_status deflate_some(tutti_zip_writer *w, const void *data, size_t size, int flush)
{
    uint8_t out[65536];
    const uint8_t *from = data;
    do {
        uInt piece = size < 1u << 30 ? (uInt)size : 1u << 30;
        w->z.next_in = (Bytef *)(uintptr_t)from;
        w->z.avail_in = piece;
        do {
            w->z.next_out = out;
            w->z.avail_out = sizeof out;
            if (deflate(&w->z, piece == size ? flush : Z_NO_FLUSH) == Z_STREAM_ERROR)
                return tutti_fail(TUTTI_INTERNAL, "%s: zlib failed", w->sink->name);
            TUTTI_TRY(tutti__sink_write(w->sink, out, sizeof out - w->z.avail_out));
        } while (w->z.avail_out == 0);
        from += piece;
        size -= piece;
    } while (size > 0);
    return TUTTI_OK;
}

static tutti_status write_member(tutti_sink *self, const void *data, size_t size)
{
    tutti_zip_writer *w = self->inside;
    for (size_t at = 0; at < size;) {
        uInt piece = size - at < 1u << 30 ? (uInt)(size - at) : 1u << 30;
        w->crc = (uint32_t)crc32(w->crc, (const Bytef *)data + at, piece);
        at += piece;
    }
    if (w->compress)
        return size > 0 ? deflate_some(w, data, size, Z_NO_FLUSH) : TUTTI_OK;
    return tutti__sink_write(w->sink, data, size);
}

tutti_status tutti__zip_begin_member(tutti_zip_writer *w, const char *name, bool compress,
                                     tutti_sink **ret_sink)
{
    size_t length = strlen(name);
    if (length == 0 || length > 60000)
        return tutti_fail(TUTTI_INVALID, "%s: a member's name has 1 to 60000 bytes, not %zu",
                          w->sink->name, length);
    free(w->name);
    w->name = strdup(name);
    w->compress = compress;
    w->crc = 0;
    w->header_at = w->sink->size;
    uint8_t header[30] = "PK\x03\x04", extra[LOCAL_EXTRA] = {1, 0, 16, 0};
    put_common(header + 4, w, UINT32_MAX, UINT32_MAX, length, LOCAL_EXTRA);
    w->z = (z_stream){0};
    if (w->name == NULL || (compress && deflateInit2(&w->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15,
                                                     8, Z_DEFAULT_STRATEGY) != Z_OK))
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory to write '%s'", w->sink->name, name);
    tutti_status status = tutti__sink_write(w->sink, header, sizeof header);
    if (status == TUTTI_OK)
        status = tutti__sink_write(w->sink, name, length);
    if (status == TUTTI_OK)
        status = tutti__sink_write(w->sink, extra, sizeof extra);
    w->data_at = w->sink->size;
    if (status == TUTTI_OK)
        status = tutti__sink_make(w->sink->name, write_member, w, ret_sink);
    if (status != TUTTI_OK && compress)
        deflateEnd(&w->z);
    return status;
}

/* The entry of the directory; what exceeds 32 bits stands in the extra field. */
static void add_entry(tutti_zip_writer *w, int64_t size, int64_t packed)
{
    const int64_t values[] = {size, packed, w->header_at};
    uint8_t entry[46] = "PK\x01\x02", extra[28] = {1, 0};
    uint32_t small[3];
    size_t used = 4, length = strlen(w->name);
    for (int i = 0; i < 3; i++) {
        small[i] = values[i] < UINT32_MAX ? (uint32_t)values[i] : UINT32_MAX;
        if (small[i] == UINT32_MAX) {
            tutti__put_u64(extra + used, (uint64_t)values[i]);
            used += 8;
        }
    }
    tutti__put_u16(extra + 2, (uint16_t)(used - 4));
    used = used > 4 ? used : 0;
    tutti__put_u16(entry + 4, VERSION);
    put_common(entry + 6, w, small[1], small[0], length, used);
    tutti__put_u32(entry + 42, small[2]);
    tutti__text_bytes(&w->directory, entry, sizeof entry);
    tutti__text_bytes(&w->directory, w->name, length);
    tutti__text_bytes(&w->directory, extra, used);
    w->count++;
}

tutti_status tutti__zip_end_member(tutti_zip_writer *w, tutti_sink *sink, tutti_status status)
{
    int64_t size = sink->size;
    tutti__sink_end(sink, status);
    if (w->compress) {
        if (status == TUTTI_OK)
            status = deflate_some(w, "", 0, Z_FINISH);
        deflateEnd(&w->z);
    }
    TUTTI_TRY(status);
    int64_t packed = w->sink->size - w->data_at;
    uint8_t sizes[16], crc[4];
    tutti__put_u64(sizes, (uint64_t)size);
    tutti__put_u64(sizes + 8, (uint64_t)packed);
    tutti__put_u32(crc, w->crc);
    TUTTI_TRY(tutti__sink_patch(w->sink, w->header_at + 14, crc, 4));
    TUTTI_TRY(tutti__sink_patch(w->sink, w->data_at - 16, sizes, 16));
    add_entry(w, size, packed);
    return TUTTI_OK;
}

tutti_status tutti__zip_finish(tutti_zip_writer *w)
{
    int64_t at = w->sink->size, size = (int64_t)w->directory.size;
    uint8_t end64[56] = "PK\x06\x06", locator[20] = "PK\x06\x07", end[22] = "PK\x05\x06";
    bool large = at + size >= UINT32_MAX || w->count >= 65535;
    if (w->directory.failed)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for its directory", w->sink->name);
    TUTTI_TRY(tutti__sink_write(w->sink, w->directory.data, w->directory.size));
    if (large) {
        tutti__put_u64(end64 + 4, 44);
        tutti__put_u16(end64 + 12, VERSION);
        tutti__put_u16(end64 + 14, VERSION);
        tutti__put_u64(end64 + 24, w->count);
        tutti__put_u64(end64 + 32, w->count);
        tutti__put_u64(end64 + 40, (uint64_t)size);
        tutti__put_u64(end64 + 48, (uint64_t)at);
        tutti__put_u64(locator + 8, (uint64_t)(at + size));
        tutti__put_u32(locator + 16, 1);
        TUTTI_TRY(tutti__sink_write(w->sink, end64, sizeof end64));
        TUTTI_TRY(tutti__sink_write(w->sink, locator, sizeof locator));
    }
    tutti__put_u16(end + 8, large ? 65535 : (uint16_t)w->count);
    tutti__put_u16(end + 10, large ? 65535 : (uint16_t)w->count);
    tutti__put_u32(end + 12, large ? UINT32_MAX : (uint32_t)size);
    tutti__put_u32(end + 16, large ? UINT32_MAX : (uint32_t)at);
    return tutti__sink_write(w->sink, end, sizeof end);
}

void tutti__zip_free(tutti_zip_writer *w)
{
    tutti__text_free(&w->directory);
    free(w->name);
    *w = (tutti_zip_writer){0};
}
