/* zip.h: zip archives with stored and deflated members, also beyond 4 GiB (zip64).
 *
 * Invariants of an archive that was accepted: names differ, are relative and climb nowhere; members
 * do not overlap; what a member unpacks to is bounded by deflate's best ratio, 1032 to 1. A
 * member's CRC is compared when its last byte is read. */
#ifndef TUTTI_IO_ZIP_H
#define TUTTI_IO_ZIP_H

#include <zlib.h>

#include "base/arena.h"
#include "io/stream.h"

typedef struct tutti_zip_member {
    const char *name;
    int64_t size, packed;  /* bytes */
    int64_t header_at, at; /* offsets of its header and of its data */
    uint32_t crc;
    uint16_t method; /* 0 stored, 8 deflated */
} tutti_zip_member;

typedef struct tutti_zip_file {
    tutti_source *source;
    size_t count;
    tutti_zip_member *members; /* as the archive lists them */
    tutti_arena arena;
} tutti_zip_file;

/* The source must outlive the archive. */
tutti_status tutti__zip_open(tutti_source *source, tutti_zip_file **ret_zip);
void tutti__zip_close(tutti_zip_file *zip); /* NULL is fine */
/* A member's bytes, to be read in order; one at a time. */
tutti_status tutti__zip_member_source(tutti_zip_file *zip, size_t index, tutti_source **ret_source);

typedef struct tutti_zip_writer {
    tutti_sink *sink;
    tutti_text directory; /* central directory so far */
    size_t count;
    char *name; /* of the member being written */
    int64_t header_at, data_at;
    uint32_t crc;
    bool compress;
    z_stream z;
} tutti_zip_writer;

/* begin; for each member: begin_member, bytes into *ret_sink, end_member (which ends that sink);
 * finish; free. */
tutti_status tutti__zip_begin(tutti_sink *sink, tutti_zip_writer *ret_writer);
tutti_status tutti__zip_begin_member(tutti_zip_writer *writer, const char *name, bool compress,
                                     tutti_sink **ret_sink);
/* `status` is how the writing went; the first failure is returned. */
tutti_status tutti__zip_end_member(tutti_zip_writer *writer, tutti_sink *sink, tutti_status status);
tutti_status tutti__zip_finish(tutti_zip_writer *writer);
void tutti__zip_free(tutti_zip_writer *writer);

#endif
