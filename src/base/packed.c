/* packed.c: see packed.h. */
#include "base/packed.h"

#include <string.h>

static size_t packed_field_size(const tutti_packed_field *f, const char *from)
{
    const tutti_packed_data *data = (const void *)from;
    switch (f->kind) {
    case TUTTI_PACKED_U32:
        return 4;
    case TUTTI_PACKED_TEXT:
        return 2 + strnlen(from, f->size - 1);
    case TUTTI_PACKED_DATA:
    case TUTTI_PACKED_LONGS:
        return 4 + data->size;
    default:
        return 8;
    }
}

size_t tutti__packed_size(const tutti_packed_field *fields, const void *object)
{
    size_t size = 0;
    for (const tutti_packed_field *f = fields; f->kind != TUTTI_PACKED_END; f++)
        size += packed_field_size(f, (const char *)object + f->offset);
    return size;
}

static uint8_t *packed_write_field(const tutti_packed_field *f, const char *from, uint8_t *to)
{
    const tutti_packed_data *data = (const void *)from;
    size_t size = packed_field_size(f, from);
    uint32_t narrow;
    uint64_t wide;
    switch (f->kind) {
    case TUTTI_PACKED_U32:
        memcpy(&narrow, from, sizeof narrow);
        tutti__packed_put(narrow, 4, to);
        break;
    case TUTTI_PACKED_TEXT:
        tutti__packed_put(size - 2, 2, to);
        memcpy(to + 2, from, size - 2);
        break;
    case TUTTI_PACKED_DATA:
    case TUTTI_PACKED_LONGS:
        tutti__packed_put(f->kind == TUTTI_PACKED_LONGS ? data->size / 8 : data->size, 4, to);
        if (data->size > 0)
            memcpy(to + 4, data->bytes, data->size);
        break;
    default:
        memcpy(&wide, from, sizeof wide);
        tutti__packed_put(wide, 8, to);
        break;
    }
    return to + size;
}

uint8_t *tutti__packed_write(const tutti_packed_field *fields, const void *object, uint8_t *to)
{
    for (const tutti_packed_field *f = fields; f->kind != TUTTI_PACKED_END; f++)
        to = packed_write_field(f, (const char *)object + f->offset, to);
    return to;
}

/* `each`: bytes of one of what the u32 counts. */
static bool packed_read_data(const uint8_t **at, const uint8_t *end, size_t each,
                             tutti_packed_data *ret)
{
    if (end - *at < 4)
        return false;
    size_t count = (size_t)tutti__packed_get(*at, 4);
    if (count > (size_t)(end - *at - 4) / each)
        return false;
    *ret = (tutti_packed_data){*at + 4, count * each};
    *at += 4 + count * each;
    return true;
}

static bool packed_read_text(const tutti_packed_field *f, const uint8_t **at, const uint8_t *end,
                             char *to)
{
    if (end - *at < 2)
        return false;
    size_t size = (size_t)tutti__packed_get(*at, 2);
    if (size > (size_t)(end - *at - 2) || size >= f->size || memchr(*at + 2, 0, size))
        return false;
    memcpy(to, *at + 2, size);
    *at += 2 + size;
    return true;
}

static bool packed_read_number(const tutti_packed_field *f, const uint8_t **at, const uint8_t *end,
                               char *to)
{
    int bytes = f->kind == TUTTI_PACKED_U32 ? 4 : 8;
    if (end - *at < bytes)
        return false;
    uint64_t wide = tutti__packed_get(*at, bytes);
    uint32_t narrow = (uint32_t)wide;
    double number;
    *at += bytes;
    if (f->kind == TUTTI_PACKED_U32)
        memcpy(to, &narrow, sizeof narrow);
    else
        memcpy(to, &wide, sizeof wide);
    memcpy(&number, &wide, sizeof number);
    return f->kind == TUTTI_PACKED_F64 ? number == number
                                       : f->below == 0 || bytes != 4 || narrow < f->below;
}

bool tutti__packed_read(const tutti_packed_field *fields, const uint8_t **at, const uint8_t *end,
                        void *object)
{
    bool good = true;
    for (const tutti_packed_field *f = fields; good && f->kind != TUTTI_PACKED_END; f++) {
        char *to = (char *)object + f->offset;
        if (f->kind == TUTTI_PACKED_TEXT)
            good = packed_read_text(f, at, end, to);
        else if (f->kind == TUTTI_PACKED_DATA || f->kind == TUTTI_PACKED_LONGS)
            good = packed_read_data(at, end, f->kind == TUTTI_PACKED_LONGS ? 8 : 1, (void *)to);
        else
            good = packed_read_number(f, at, end, to);
    }
    return good;
}

int64_t tutti__packed_long(tutti_packed_data longs, size_t index)
{
    return (int64_t)tutti__packed_get(longs.bytes + 8 * index, 8);
}
