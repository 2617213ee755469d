/* inflate.c: see inflate.h. */
#include "io/inflate.h"

#include <stdlib.h>
#include <zlib.h>

#include "io/gzip.h"

#define PIECE 65536

typedef struct inflater {
    tutti_source *from;
    bool take, ended;
    tutti_packing packing;
    int64_t at, end;  /* packed bytes not read yet */
    int64_t position; /* unpacked bytes given */
    z_stream z;
    uint8_t in[PIECE];
} inflater;

static void close_inflater(tutti_source *self)
{
    inflater *f = self->inside;
    inflateEnd(&f->z);
    if (f->take)
        tutti__source_close(f->from);
    free(f);
}

static tutti_status fail_damaged(const tutti_source *self, const inflater *f)
{
    return tutti_fail(TUTTI_CORRUPT, "%s: packed data is damaged or truncated near offset %lld",
                      self->name, (long long)(f->at - f->z.avail_in));
}

static tutti_status refill(inflater *f)
{
    if (f->z.avail_in > 0 || f->at >= f->end)
        return TUTTI_OK;
    size_t want = f->end - f->at < PIECE ? (size_t)(f->end - f->at) : PIECE, got;
    TUTTI_TRY(tutti__source_some(f->from, f->at, f->in, want, &got));
    f->z.next_in = f->in;
    f->z.avail_in = (uInt)got;
    f->at = got == 0 ? f->end : f->at + (int64_t)got;
    return TUTTI_OK;
}

/* One step of zlib: some input, some output. */
static tutti_status inflate_step(tutti_source *self, inflater *f)
{
    TUTTI_TRY(refill(f));
    if (f->z.avail_in == 0)
        return fail_damaged(self, f);
    int code = inflate(&f->z, Z_NO_FLUSH);
    if (code == Z_STREAM_END) {
        TUTTI_TRY(refill(f));
        f->ended = f->packing != TUTTI_PACKED_GZIP || f->z.avail_in == 0;
        if (!f->ended && inflateReset(&f->z) != Z_OK)
            return fail_damaged(self, f);
        return TUTTI_OK;
    }
    if (code == Z_MEM_ERROR)
        return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory to unpack it", self->name);
    return code == Z_OK || code == Z_BUF_ERROR ? TUTTI_OK : fail_damaged(self, f);
}

static tutti_status read_inflater(tutti_source *self, int64_t offset, void *data, size_t size,
                                  size_t *ret_got)
{
    inflater *f = self->inside;
    size_t done = 0;
    if (offset != f->position)
        return tutti_fail(TUTTI_INTERNAL,
                          "%s: packed data is read in order, not at %lld after %lld", self->name,
                          (long long)offset, (long long)f->position);
    while (done < size && !f->ended) {
        size_t left = size - done;
        f->z.next_out = (Bytef *)data + done;
        f->z.avail_out = left < 1u << 30 ? (uInt)left : 1u << 30;
        uInt room = f->z.avail_out;
        TUTTI_TRY(inflate_step(self, f));
        done += room - f->z.avail_out;
    }
    f->position += (int64_t)done;
    *ret_got = done;
    return TUTTI_OK;
}

tutti_status tutti__source_inflate(tutti_source *from, int64_t at, int64_t end,
                                   tutti_packing packing, int64_t size, bool take,
                                   tutti_source **ret_source)
{
    static const int bits[] = {
        [TUTTI_PACKED_RAW] = -15, [TUTTI_PACKED_ZLIB] = 15, [TUTTI_PACKED_GZIP] = 15 + 16};
    inflater *f = calloc(1, sizeof *f);
    if (f == NULL || inflateInit2(&f->z, bits[packing]) != Z_OK) {
        free(f);
        tutti_status status = tutti_fail(TUTTI_NO_MEMORY, "no memory to unpack '%s'", from->name);
        if (take)
            tutti__source_close(from);
        return status;
    }
    f->from = from;
    f->take = take;
    f->packing = packing;
    f->at = at;
    f->end = end;
    const tutti_source kind = {.read = read_inflater, .close = close_inflater};
    return tutti__source_make(from->name, size, &kind, f, ret_source);
}

tutti_status tutti__source_file_unpacked(const char *path, tutti_source **ret_source)
{
    tutti_source *file;
    uint8_t start[2];
    size_t got;
    TUTTI_TRY(tutti__source_file(path, &file));
    tutti_status status = tutti__source_some(file, 0, start, 2, &got);
    if (status != TUTTI_OK) {
        tutti__source_close(file);
        return status;
    }
    if (tutti__gzip_is(start, got))
        return tutti__source_inflate(file, 0, file->size, TUTTI_PACKED_GZIP, -1, true, ret_source);
    *ret_source = file;
    return TUTTI_OK;
}
