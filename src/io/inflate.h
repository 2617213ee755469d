/* inflate.h: a source that unpacks another with zlib, and a sink that packs for another, piece by
 * piece. */
#ifndef TUTTI_IO_INFLATE_H
#define TUTTI_IO_INFLATE_H

#include "io/stream.h"

typedef enum tutti_packing {
    TUTTI_PACKED_RAW, /* deflate without a frame, as in zip */
    TUTTI_PACKED_ZLIB,
    TUTTI_PACKED_GZIP, /* of one or more members */
} tutti_packing;

/* Unpacks bytes [at, end) of `from`, which must outlive the result, or, with `take`, is closed with
 * it (and on failure). `size` is what must come out; -1 when the end will tell. */
tutti_status tutti__source_inflate(tutti_source *from, int64_t at, int64_t end,
                                   tutti_packing packing, int64_t size, bool take,
                                   tutti_source **ret_source);
/* A file as it is, or unpacked when it begins like gzip. */
tutti_status tutti__source_file_unpacked(const char *path, tutti_source **ret_source);
/* Packs what is written into `to`, which ends with it: committed or aborted with the new sink, and
 * aborted when this fails. */
tutti_status tutti__sink_deflate(tutti_sink *to, tutti_packing packing, tutti_sink **ret_sink);

#endif
