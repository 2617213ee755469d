/* deflate.c: the sink of inflate.h that packs. */
#include <stdlib.h>
#include <zlib.h>

#include "io/inflate.h"

typedef struct deflater {
    tutti_sink *to;
    z_stream z;
    uint8_t out[65536];
} deflater;

static tutti_status pack(deflater *d, const void *data, size_t size, int flush)
{
    const uint8_t *from = data;
    do {
        uInt piece = size < 1u << 30 ? (uInt)size : 1u << 30;
        d->z.next_in = (Bytef *)(uintptr_t)from;
        d->z.avail_in = piece;
        do {
            d->z.next_out = d->out;
            d->z.avail_out = sizeof d->out;
            if (deflate(&d->z, piece == size ? flush : Z_NO_FLUSH) == Z_STREAM_ERROR)
                return tutti_fail(TUTTI_INTERNAL, "%s: zlib cannot pack", d->to->name);
            TUTTI_TRY(tutti__sink_write(d->to, d->out, sizeof d->out - d->z.avail_out));
        } while (d->z.avail_out == 0);
        from += piece;
        size -= piece;
    } while (size > 0);
    return TUTTI_OK;
}

static tutti_status write_packed(tutti_sink *self, const void *data, size_t size)
{
    return size > 0 ? pack(self->inside, data, size, Z_NO_FLUSH) : TUTTI_OK;
}

static tutti_status finish_packed(tutti_sink *self, tutti_status status)
{
    deflater *d = self->inside;
    if (status == TUTTI_OK)
        status = pack(d, "", 0, Z_FINISH);
    status = tutti__sink_end(d->to, status);
    deflateEnd(&d->z);
    free(d);
    return status;
}

tutti_status tutti__sink_deflate(tutti_sink *to, tutti_packing packing, tutti_sink **ret_sink)
{
    static const int bits[] = {
        [TUTTI_PACKED_RAW] = -15, [TUTTI_PACKED_ZLIB] = 15, [TUTTI_PACKED_GZIP] = 15 + 16};
    deflater *d = calloc(1, sizeof *d);
    tutti_sink *sink;
    tutti_status status = tutti__sink_make(to->name, write_packed, d, &sink);
    if (status == TUTTI_OK &&
        (d == NULL || deflateInit2(&d->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, bits[packing], 8,
                                   Z_DEFAULT_STRATEGY) != Z_OK)) {
        tutti__sink_abort(sink);
        status = tutti_fail(TUTTI_NO_MEMORY, "no memory to pack '%s'", to->name);
    }
    if (status != TUTTI_OK) {
        tutti__sink_abort(to);
        free(d);
        return status;
    }
    d->to = to;
    sink->finish = finish_packed;
    *ret_sink = sink;
    return TUTTI_OK;
}
