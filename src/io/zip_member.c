/* zip_member.c: one member of an archive as a source, with its CRC compared at the end. */
#include <stdlib.h>

#include "io/inflate.h"
#include "io/zip.h"

typedef struct reading {
    const tutti_zip_member *member;
    tutti_source *from; /* the archive, or what unpacks it */
    bool packed;
    int64_t position;
    uint32_t crc;
} reading;

static tutti_status read_member(tutti_source *self, int64_t offset, void *data, size_t size,
                                size_t *ret_got)
{
    reading *r = self->inside;
    const tutti_zip_member *m = r->member;
    size_t want = (int64_t)size < m->size - offset ? size : (size_t)(m->size - offset);
    if (offset != r->position)
        return tutti_fail(TUTTI_INTERNAL, "%s: a member is read in order", self->name);
    TUTTI_TRY(tutti__source_read(r->from, (r->packed ? 0 : m->at) + offset, data, want,
                                 "a member of a zip archive"));
    for (size_t at = 0; at < want;) {
        uInt piece = want - at < 1u << 30 ? (uInt)(want - at) : 1u << 30;
        r->crc = (uint32_t)crc32(r->crc, (const Bytef *)data + at, piece);
        at += piece;
    }
    r->position += (int64_t)want;
    if (r->position == m->size && r->crc != m->crc)
        return tutti_fail(TUTTI_CORRUPT,
                          "%s: its CRC is %08x, the archive says %08x: the member is damaged",
                          self->name, r->crc, m->crc);
    *ret_got = want;
    return TUTTI_OK;
}

static void close_member(tutti_source *self)
{
    reading *r = self->inside;
    if (r->packed)
        tutti__source_close(r->from);
    free(r);
}

tutti_status tutti__zip_member_source(tutti_zip_file *zip, size_t index, tutti_source **ret_source)
{
    const tutti_zip_member *m = &zip->members[index];
    reading *r = calloc(1, sizeof *r);
    tutti_text name = {0};
    tutti__text_add(&name, "%s: %s", zip->source->name, m->name);
    if (r == NULL || name.failed) {
        free(r);
        tutti__text_free(&name);
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory to read a member", zip->source->name);
    }
    *r = (reading){.member = m, .from = zip->source, .packed = m->method == 8};
    tutti_status status = r->packed
                              ? tutti__source_inflate(zip->source, m->at, m->at + m->packed,
                                                      TUTTI_PACKED_RAW, m->size, false, &r->from)
                              : TUTTI_OK;
    const tutti_source kind = {.read = read_member, .close = close_member};
    if (status == TUTTI_OK)
        status = tutti__source_make(name.data, m->size, &kind, r, ret_source);
    else
        free(r);
    tutti__text_free(&name);
    return status;
}
