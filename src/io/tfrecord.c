/* tfrecord.c: see tfrecord.h. */
#include "io/tfrecord.h"

#include <stdlib.h>

#include "io/crc32c.h"
#include "io/gzip.h"

#define FIRST_PIECE                                                                                \
    ((size_t)1 << 20) /* memory grows with the bytes that come, not with promises                  \
                       */

static uint32_t masked(const void *data, size_t size)
{
    return tutti__crc32c_mask(tutti__crc32c(0, data, size));
}

/* A plain file begins with a size and its checksum, which no packed one does by chance. */
static bool is_plain(const uint8_t *start, size_t size)
{
    return size < 2 || (size >= 12 && tutti__get_u32(start + 8) == masked(start, 8)) ||
           !(tutti__gzip_is(start, size) ||
             ((start[0] & 15) == 8 && (start[0] * 256 + start[1]) % 31 == 0));
}

tutti_status tutti__tfrecord_open(tutti_source *source, size_t limit, tutti_tfrecord *ret_reader)
{
    uint8_t start[12];
    size_t got = 0;
    tutti_tfrecord reader = {.source = source, .limit = limit != 0 ? limit : (size_t)1 << 30};
    if (source->size >= 0) {
        tutti_status status = tutti__source_some(source, 0, start, sizeof start, &got);
        if (status != TUTTI_OK) {
            tutti__source_close(source);
            return status;
        }
    }
    if (!is_plain(start, got)) {
        tutti_packing packing = tutti__gzip_is(start, got) ? TUTTI_PACKED_GZIP : TUTTI_PACKED_ZLIB;
        TUTTI_TRY(
            tutti__source_inflate(source, 0, source->size, packing, -1, true, &reader.source));
        reader.packed = true;
    }
    *ret_reader = reader;
    return TUTTI_OK;
}

static tutti_status make_room(tutti_tfrecord *r, size_t size)
{
    if (size <= r->capacity)
        return TUTTI_OK;
    uint8_t *grown = realloc(r->data, size);
    if (grown == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for a record of %zu bytes",
                          r->source->name, size);
    r->data = grown;
    r->capacity = size;
    return TUTTI_OK;
}

/* `total` bytes at `at`; where the source's size is not known, room doubles as they come. */
static tutti_status read_body(tutti_tfrecord *r, int64_t at, size_t total)
{
    size_t done = 0, step = r->source->size >= 0 ? total : FIRST_PIECE;
    if (r->source->size >= 0 && (int64_t)total > r->source->size - at)
        return tutti_fail(
            TUTTI_CORRUPT,
            "%s: the record at offset %lld needs %zu bytes, %lld are left; the file is "
            "truncated",
            r->source->name, (long long)r->at, total, (long long)(r->source->size - at));
    while (done < total) {
        size_t piece = total - done < step ? total - done : step;
        TUTTI_TRY(make_room(r, done + piece));
        TUTTI_TRY(
            tutti__source_read(r->source, at + (int64_t)done, r->data + done, piece, "a record"));
        done += piece;
        step = done;
    }
    return TUTTI_OK;
}

/* The size of the record at r->at; false in *ret_more at the file's end. */
static tutti_status read_head(tutti_tfrecord *r, bool *ret_more, uint64_t *ret_size)
{
    uint8_t head[12];
    size_t got;
    TUTTI_TRY(tutti__source_some(r->source, r->at, head, sizeof head, &got));
    *ret_more = got > 0;
    if (got == 0)
        return TUTTI_OK;
    if (got < sizeof head)
        return tutti_fail(TUTTI_CORRUPT, "%s: ends inside the size of a record at offset %lld",
                          r->source->name, (long long)r->at);
    uint64_t size = tutti__get_u64(head);
    if (tutti__get_u32(head + 8) != masked(head, 8))
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: the size of the record at offset %lld is damaged (or this is no "
                          "TFRecord file)",
                          r->source->name, (long long)r->at);
    if (size > r->limit)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "%s: the record at offset %lld has %llu bytes, at most %zu are read here",
                          r->source->name, (long long)r->at, (unsigned long long)size, r->limit);
    *ret_size = size;
    return TUTTI_OK;
}

tutti_status tutti__tfrecord_pass(tutti_tfrecord *r, int64_t at)
{
    uint64_t size;
    for (bool more = true; more && r->at < at;) {
        TUTTI_TRY(read_head(r, &more, &size));
        r->at += more ? 16 + (int64_t)size : 0;
    }
    return TUTTI_OK;
}

tutti_status tutti__tfrecord_next(tutti_tfrecord *r, const uint8_t **ret_data, size_t *ret_size)
{
    uint64_t size;
    bool more;
    TUTTI_TRY(read_head(r, &more, &size));
    if (!more) {
        *ret_data = NULL;
        *ret_size = 0;
        return TUTTI_OK;
    }
    TUTTI_TRY(read_body(r, r->at + 12, (size_t)size + 4));
    if (tutti__get_u32(r->data + size) != masked(r->data, (size_t)size))
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: the record at offset %lld (%llu bytes) is damaged: its "
                          "checksum differs",
                          r->source->name, (long long)r->at, (unsigned long long)size);
    r->at += 16 + (int64_t)size;
    *ret_data = r->data;
    *ret_size = (size_t)size;
    return TUTTI_OK;
}

void tutti__tfrecord_close(tutti_tfrecord *r)
{
    tutti__source_close(r->source);
    free(r->data);
    *r = (tutti_tfrecord){0};
}

tutti_status tutti__tfrecord_put(tutti_sink *sink, const void *data, size_t size)
{
    uint8_t head[12], tail[4];
    tutti__put_u64(head, size);
    tutti__put_u32(head + 8, masked(head, 8));
    tutti__put_u32(tail, masked(data, size));
    TUTTI_TRY(tutti__sink_write(sink, head, sizeof head));
    TUTTI_TRY(tutti__sink_write(sink, data, size));
    return tutti__sink_write(sink, tail, sizeof tail);
}
