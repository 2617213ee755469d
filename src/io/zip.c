/* zip.c: the reader. The directory at the archive's end is the truth; each member's own header must
 * agree with it. */
#include "io/zip.h"

#include <stdlib.h>
#include <string.h>

#include "io/inflate.h"

#define END_BYTES 22
#define DIRECTORY_LIMIT ((int64_t)64 << 20)

typedef struct ending {
    int64_t at; /* where the directory must end at the latest */
    int64_t directory_at, directory_size, count;
} ending;

static tutti_status fail_at(const tutti_source *source, int64_t at, const char *what)
{
    return tutti_fail(TUTTI_CORRUPT, "%s: offset %lld: zip archive, expected %s", source->name,
                      (long long)at, what);
}

/* Beyond 4 GiB a second ending stands before the first, found through a locator. */
static tutti_status read_ending64(tutti_source *source, ending *end)
{
    uint8_t locator[20], more[56];
    if (end->at < 20)
        return TUTTI_OK;
    TUTTI_TRY(tutti__source_read(source, end->at - 20, locator, 20, "the zip64 locator"));
    if (tutti__get_u32(locator) != 0x07064b50)
        return TUTTI_OK;
    uint64_t at = tutti__get_u64(locator + 8);
    if (at > (uint64_t)(end->at - 20) || end->at - 20 - (int64_t)at < 56)
        return fail_at(source, end->at - 20, "a zip64 ending inside the file");
    TUTTI_TRY(tutti__source_read(source, (int64_t)at, more, 56, "the zip64 ending"));
    uint64_t count = tutti__get_u64(more + 32), size = tutti__get_u64(more + 40);
    uint64_t directory = tutti__get_u64(more + 48);
    if (tutti__get_u32(more) != 0x06064b50 || (count | size | directory) > INT64_MAX)
        return fail_at(source, (int64_t)at, "a zip64 ending");
    *end = (ending){.at = (int64_t)at,
                    .directory_at = (int64_t)directory,
                    .directory_size = (int64_t)size,
                    .count = (int64_t)count};
    return TUTTI_OK;
}

static tutti_status find_ending(tutti_source *source, ending *ret)
{
    uint8_t *tail;
    int64_t size = source->size < 65535 + END_BYTES ? source->size : 65535 + END_BYTES;
    int64_t base = source->size - size, at = size - END_BYTES;
    if (at < 0)
        return fail_at(source, source->size, "at least 22 bytes");
    if ((tail = malloc((size_t)size)) == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for its directory", source->name);
    tutti_status status = tutti__source_read(source, base, tail, (size_t)size, "the zip directory");
    while (status == TUTTI_OK && at >= 0 &&
           (tutti__get_u32(tail + at) != 0x06054b50 ||
            tutti__get_u16(tail + at + 20) != size - at - END_BYTES))
        at--;
    if (status == TUTTI_OK && at < 0)
        status = fail_at(source, source->size,
                         "the end of its directory; the file is truncated or "
                         "no zip archive");
    if (status == TUTTI_OK)
        *ret = (ending){.at = base + at,
                        .directory_at = tutti__get_u32(tail + at + 16),
                        .directory_size = tutti__get_u32(tail + at + 12),
                        .count = tutti__get_u16(tail + at + 10)};
    free(tail);
    TUTTI_TRY(status);
    TUTTI_TRY(read_ending64(source, ret));
    if (ret->directory_size > DIRECTORY_LIMIT || ret->directory_at > ret->at ||
        ret->directory_size > ret->at - ret->directory_at || ret->count > ret->directory_size / 46)
        return fail_at(source, ret->at, "a directory inside the file, of at most 64 MiB");
    return TUTTI_OK;
}

/* Relative, and no way up; nothing here becomes a path, but somebody may make one of it. */
static bool is_safe_name(const char *name, size_t size)
{
    if (size == 0 || name[0] == '/' || memchr(name, '\0', size) != NULL ||
        memchr(name, '\\', size) != NULL)
        return false;
    if (size > 1 && name[1] == ':') /* a drive; elsewhere it is a name's, as in kernel:0 */
        return false;
    for (size_t i = 0; i + 1 < size; i++)
        if (name[i] == '.' && name[i + 1] == '.' && (i == 0 || name[i - 1] == '/') &&
            (i + 2 == size || name[i + 2] == '/'))
            return false;
    return true;
}

/* Sizes of 0xffffffff stand in an extra field of kind 1, in this order. */
static bool read_extra64(const uint8_t *extra, size_t size, tutti_zip_member *m)
{
    int64_t *fields[] = {&m->size, &m->packed, &m->header_at};
    bool needed = m->size == UINT32_MAX || m->packed == UINT32_MAX || m->header_at == UINT32_MAX;
    for (size_t at = 0; needed && at + 4 <= size;) {
        size_t kind = tutti__get_u16(extra + at), length = tutti__get_u16(extra + at + 2);
        at += 4;
        if (length > size - at)
            return false;
        for (size_t i = 0, used = 0; kind == 1 && i < 3; i++)
            if (*fields[i] == UINT32_MAX) {
                if (used + 8 > length || tutti__get_u64(extra + at + used) > INT64_MAX)
                    return false;
                *fields[i] = (int64_t)tutti__get_u64(extra + at + used);
                used += 8;
            }
        if (kind == 1)
            return true;
        at += length;
    }
    return !needed;
}

static tutti_status parse_member(tutti_zip_file *zip, const uint8_t *p, size_t left, int64_t place,
                                 tutti_zip_member *m, size_t *ret_used)
{
    if (left < 46 || tutti__get_u32(p) != 0x02014b50)
        return fail_at(zip->source, place, "an entry of its directory");
    size_t name = tutti__get_u16(p + 28), extra = tutti__get_u16(p + 30);
    size_t comment = tutti__get_u16(p + 32);
    if (left - 46 < name + extra + comment)
        return fail_at(zip->source, place, "an entry that ends inside its directory");
    *m = (tutti_zip_member){.name = tutti__arena_bytes(&zip->arena, p + 46, name),
                            .method = tutti__get_u16(p + 10),
                            .crc = tutti__get_u32(p + 16),
                            .packed = tutti__get_u32(p + 20),
                            .size = tutti__get_u32(p + 24),
                            .header_at = tutti__get_u32(p + 42)};
    if (m->name == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for its names", zip->source->name);
    if (!is_safe_name((const char *)p + 46, name))
        return fail_at(zip->source, place,
                       "a name without '..', '\\', a drive 'c:' or a leading '/'");
    if (!read_extra64(p + 46 + name, extra, m))
        return fail_at(zip->source, place, "sizes of 64 bits");
    if ((tutti__get_u16(p + 8) & 1) != 0 || (m->method != 0 && m->method != 8))
        return tutti_fail(TUTTI_UNSUPPORTED,
                          "%s: member '%.200s' is encrypted or packed by method %u; stored and "
                          "deflated ones are read",
                          zip->source->name, m->name, m->method);
    *ret_used = 46 + name + extra + comment;
    return TUTTI_OK;
}

/* The member's own header gives the place of its data. */
static tutti_status check_member(tutti_zip_file *zip, tutti_zip_member *m, int64_t end)
{
    uint8_t header[30];
    size_t length = strlen(m->name);
    char name[65536];
    if (m->header_at > end - 30)
        return fail_at(zip->source, m->header_at, "a member before the directory");
    TUTTI_TRY(tutti__source_read(zip->source, m->header_at, header, 30, "a member's header"));
    if (tutti__get_u32(header) != 0x04034b50 || tutti__get_u16(header + 26) != length)
        return fail_at(zip->source, m->header_at, "a member's header as its directory says");
    TUTTI_TRY(tutti__source_read(zip->source, m->header_at + 30, name, length, "a member's name"));
    m->at = m->header_at + 30 + (int64_t)length + tutti__get_u16(header + 28);
    if (memcmp(name, m->name, length) != 0 || m->at > end || m->packed > end - m->at)
        return fail_at(zip->source, m->header_at, "a member with the directory's name and sizes");
    if (m->method == 0 ? m->size != m->packed : m->size / 1032 > m->packed)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: member '%.200s' promises %lld bytes out of %lld, which cannot be",
                          zip->source->name, m->name, (long long)m->size, (long long)m->packed);
    return TUTTI_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(tutti_zip_member *const *)a)->name, (*(tutti_zip_member *const *)b)->name);
}

static int by_place(const void *a, const void *b)
{
    int64_t x = (*(tutti_zip_member *const *)a)->header_at;
    int64_t y = (*(tutti_zip_member *const *)b)->header_at;
    return (x > y) - (x < y);
}

static tutti_status check_members(tutti_zip_file *zip, int64_t end)
{
    tutti_zip_member **order = tutti__arena_array(&zip->arena, zip->count + 1, sizeof *order);
    if (order == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for its names", zip->source->name);
    for (size_t i = 0; i < zip->count; i++) {
        order[i] = &zip->members[i];
        TUTTI_TRY(check_member(zip, order[i], end));
    }
    qsort(order, zip->count, sizeof *order, by_name);
    for (size_t i = 1; i < zip->count; i++)
        if (strcmp(order[i - 1]->name, order[i]->name) == 0)
            return tutti_fail(TUTTI_CORRUPT, "%s: member '%.200s' stands twice in the archive",
                              zip->source->name, order[i]->name);
    qsort(order, zip->count, sizeof *order, by_place);
    for (size_t i = 1; i < zip->count; i++)
        if (order[i - 1]->at + order[i - 1]->packed > order[i]->header_at)
            return fail_at(zip->source, order[i]->header_at, "members that do not overlap");
    return TUTTI_OK;
}

static tutti_status parse_directory(tutti_zip_file *zip, const ending *end, const uint8_t *data)
{
    size_t left = (size_t)end->directory_size, used;
    zip->members = tutti__arena_array(&zip->arena, (size_t)end->count + 1, sizeof *zip->members);
    if (zip->members == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for %lld members", zip->source->name,
                          (long long)end->count);
    for (; (int64_t)zip->count < end->count; zip->count++, data += used, left -= used)
        TUTTI_TRY(parse_member(zip, data, left,
                               end->directory_at + end->directory_size - (int64_t)left,
                               &zip->members[zip->count], &used));
    return check_members(zip, end->directory_at);
}

tutti_status tutti__zip_open(tutti_source *source, tutti_zip_file **ret_zip)
{
    ending end;
    TUTTI_TRY(find_ending(source, &end));
    tutti_zip_file *zip = calloc(1, sizeof *zip);
    uint8_t *data = malloc((size_t)end.directory_size + 1);
    tutti_status status = TUTTI_OK;
    if (zip == NULL || data == NULL)
        status = tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for its directory", source->name);
    else
        status = tutti__source_read(source, end.directory_at, data, (size_t)end.directory_size,
                                    "the zip directory");
    if (status == TUTTI_OK) {
        zip->source = source;
        status = parse_directory(zip, &end, data);
    }
    free(data);
    if (status != TUTTI_OK)
        tutti__zip_close(zip);
    else
        *ret_zip = zip;
    return status;
}

void tutti__zip_close(tutti_zip_file *zip)
{
    if (zip == NULL)
        return;
    tutti__arena_free(&zip->arena);
    free(zip);
}
