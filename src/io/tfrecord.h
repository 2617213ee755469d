/* tfrecord.h: TensorFlow's file of records:
 *
 *     u64 size | u32 masked crc32c of the size | bytes | u32 masked crc32c of the bytes
 *
 * plain, or the whole file packed by gzip or zlib. */
#ifndef TUTTI_IO_TFRECORD_H
#define TUTTI_IO_TFRECORD_H

#include "io/inflate.h"
#include "io/stream.h"

typedef struct tutti_tfrecord {
    tutti_source *source;
    int64_t at; /* offset of the next record, in unpacked bytes */
    uint8_t *data;
    size_t capacity, limit;
    bool packed;
} tutti_tfrecord;

/* Takes the source over, also on failure. Packed files are recognised. `limit` bounds one record
 * (0: 1 GiB). */
tutti_status tutti__tfrecord_open(tutti_source *source, size_t limit, tutti_tfrecord *ret_reader);
/* The next record; *ret_data is NULL at the file's end, and else valid until the next call. A file
 * that ends inside a record is TUTTI_CORRUPT; reader.at stays before it, so that a file that grows
 * can be tried again. */
tutti_status tutti__tfrecord_next(tutti_tfrecord *reader, const uint8_t **ret_data,
                                  size_t *ret_size);
/* Passes over records that begin before `at`, by their sizes; plain files only. */
tutti_status tutti__tfrecord_pass(tutti_tfrecord *reader, int64_t at);
void tutti__tfrecord_close(tutti_tfrecord *reader); /* zeroed is fine */

/* Appends one record to a sink. */
tutti_status tutti__tfrecord_put(tutti_sink *sink, const void *data, size_t size);

#endif
