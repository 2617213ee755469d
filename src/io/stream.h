/* stream.h: where the bytes of a format come from and go to: memory, or a file of the world. A
 * format reads from a source and writes to a sink, and so can be tested and fuzzed without files.
 *
 *     tutti_source *source;
 *     TUTTI_TRY(tutti__source_file(path, &source));
 *     tutti_status status = tutti__npy_read(source, &tensor);
 *     tutti__source_close(source);
 *
 * Neither is thread-safe, but several threads may read from one file's or memory's source. */
#ifndef TUTTI_IO_STREAM_H
#define TUTTI_IO_STREAM_H

#include "base/container.h"
#include "base/world.h"

typedef struct tutti_source {
    char *name;   /* for messages: usually the path */
    int64_t size; /* in bytes; -1 when only the end will tell */
    /* Fills `data`; less than `size` only at the end. A source that unpacks takes offsets only in
     * order: each where the one before ended. */
    tutti_status (*read)(struct tutti_source *self, int64_t offset, void *data, size_t size,
                         size_t *ret_got);
    void (*close)(struct tutti_source *self); /* (optional) what the source holds, not the source */
    const uint8_t *data;                      /* of memory */
    tutti_file *file;                         /* of a file */
    void *inside;                             /* of any other */
} tutti_source;

/* Borrows the bytes. */
tutti_status tutti__source_bytes(const char *name, const void *data, size_t size,
                                 tutti_source **ret_source);
tutti_status tutti__source_file(const char *path, tutti_source **ret_source);
/* A source of another kind; takes over `inside`, which `close` gives back, also on failure. */
tutti_status tutti__source_make(const char *name, int64_t size, const tutti_source *kind,
                                void *inside, tutti_source **ret_source);
void tutti__source_close(tutti_source *source); /* NULL is fine */

/* All `size` bytes at `offset`; fewer are TUTTI_CORRUPT. `what` is for the message. */
tutti_status tutti__source_read(tutti_source *source, int64_t offset, void *data, size_t size,
                                const char *what);
/* As many as there are. */
tutti_status tutti__source_some(tutti_source *source, int64_t offset, void *data, size_t size,
                                size_t *ret_got);

typedef struct tutti_sink {
    char *name;
    int64_t size;     /* bytes taken so far: where the next ones will stand */
    int64_t appended; /* bytes that were in the file before */
    tutti_text *text; /* of memory; else NULL */
    tutti_file *file;
    uint8_t *buffer; /* small writes to a file wait here */
    size_t waiting;
    /* Of any other: takes all bytes itself; such a sink cannot be patched. */
    tutti_status (*write)(struct tutti_sink *self, const void *data, size_t size);
    /* (optional) At the end; `status` says how it went so far. Returns how it went. */
    tutti_status (*finish)(struct tutti_sink *self, tutti_status status);
    void *inside;
} tutti_sink;

/* Into memory; the text stays the caller's. */
tutti_status tutti__sink_text(const char *name, tutti_text *text, tutti_sink **ret_sink);
/* Into a file: TUTTI_FILE_REPLACE changes it at commit, TUTTI_FILE_APPEND at once. */
tutti_status tutti__sink_file(const char *path, tutti_file_mode mode, tutti_sink **ret_sink);
/* A sink of another kind; `inside` stays the caller's, who may set `finish`. */
tutti_status tutti__sink_make(const char *name,
                              tutti_status (*write)(tutti_sink *self, const void *data,
                                                    size_t size),
                              void *inside, tutti_sink **ret_sink);
tutti_status tutti__sink_write(tutti_sink *sink, const void *data, size_t size);
/* Writes over bytes that were written before. */
tutti_status tutti__sink_patch(tutti_sink *sink, int64_t offset, const void *data, size_t size);
/* Hands waiting bytes to the file, so that others can read them. */
tutti_status tutti__sink_flush(tutti_sink *sink);
/* Both end the sink's life, also on failure. NULL is fine. Abort leaves a replaced file as it was.
 */
tutti_status tutti__sink_commit(tutti_sink *sink);
void tutti__sink_abort(tutti_sink *sink);
/* Commits when status is TUTTI_OK, else aborts; the first error is returned. */
tutti_status tutti__sink_end(tutti_sink *sink, tutti_status status);

/* Numbers as they stand in files. */
static inline uint16_t tutti__get_u16(const void *data)
{
    const uint8_t *p = data;
    return (uint16_t)(p[0] | p[1] << 8);
}
static inline uint32_t tutti__get_u32(const void *data)
{
    const uint8_t *p = data;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
static inline uint64_t tutti__get_u64(const void *data)
{
    return tutti__get_u32(data) | (uint64_t)tutti__get_u32((const uint8_t *)data + 4) << 32;
}
static inline void tutti__put_u16(void *data, uint16_t value)
{
    uint8_t *p = data;
    p[0] = (uint8_t)value, p[1] = (uint8_t)(value >> 8);
}
static inline void tutti__put_u32(void *data, uint32_t value)
{
    tutti__put_u16(data, (uint16_t)value);
    tutti__put_u16((uint8_t *)data + 2, (uint16_t)(value >> 16));
}
static inline void tutti__put_u64(void *data, uint64_t value)
{
    tutti__put_u32(data, (uint32_t)value);
    tutti__put_u32((uint8_t *)data + 4, (uint32_t)(value >> 32));
}

#endif
