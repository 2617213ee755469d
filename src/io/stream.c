/* stream.c: see stream.h. */
#include "io/stream.h"
#include "base/require.h"

#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)1 << 16)

tutti_status tutti__source_make(const char *name, int64_t size, const tutti_source *kind,
                                void *inside, tutti_source **ret_source)
{
    tutti_source *source = malloc(sizeof *source);
    char *copy = strdup(name);
    if (source == NULL || copy == NULL) {
        tutti_source closed = *kind;
        closed.inside = inside;
        if (closed.close != NULL)
            closed.close(&closed);
        free(source);
        free(copy);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to read '%s'", name);
    }
    *source = *kind;
    source->name = copy;
    source->size = size;
    source->inside = inside;
    *ret_source = source;
    return TUTTI_OK;
}

void tutti__source_close(tutti_source *source)
{
    if (source == NULL)
        return;
    if (source->close != NULL)
        source->close(source);
    free(source->name);
    free(source);
}

static tutti_status read_memory(tutti_source *self, int64_t offset, void *data, size_t size,
                                size_t *ret_got)
{
    size_t left = offset < self->size ? (size_t)(self->size - offset) : 0;
    size_t got = size < left ? size : left;
    if (got > 0)
        memcpy(data, self->data + offset, got);
    *ret_got = got;
    return TUTTI_OK;
}

tutti_status tutti__source_bytes(const char *name, const void *data, size_t size,
                                 tutti_source **ret_source)
{
    const tutti_source kind = {.read = read_memory, .data = data};
    return tutti__source_make(name, (int64_t)size, &kind, NULL, ret_source);
}

static tutti_status read_file(tutti_source *self, int64_t offset, void *data, size_t size,
                              size_t *ret_got)
{
    const tutti_world *world = tutti__world();
    return world->read_at(world->self, self->file, offset, data, size, ret_got);
}

static void close_file(tutti_source *self)
{
    const tutti_world *world = tutti__world();
    world->close_file(world->self, self->file, false);
}

tutti_status tutti__source_file(const char *path, tutti_source **ret_source)
{
    TUTTI_REQUIRE(path);
    const tutti_world *world = tutti__world();
    tutti_source kind = {.read = read_file, .close = close_file};
    int64_t size;
    TUTTI_TRY(world->open_file(world->self, path, TUTTI_FILE_READ, &kind.file, &size));
    return tutti__source_make(path, size, &kind, NULL, ret_source);
}

tutti_status tutti__source_some(tutti_source *source, int64_t offset, void *data, size_t size,
                                size_t *ret_got)
{
    return source->read(source, offset, data, size, ret_got);
}

tutti_status tutti__source_read(tutti_source *source, int64_t offset, void *data, size_t size,
                                const char *what)
{
    size_t got = 0;
    if (offset < 0)
        return tutti_fail(TUTTI_CORRUPT, "%s: %s at offset %lld lies before the file", source->name,
                          what, (long long)offset);
    TUTTI_TRY(source->read(source, offset, data, size, &got));
    if (got < size)
        return tutti_fail(
            TUTTI_CORRUPT,
            "%s: ends at byte %lld inside %s, which needs %zu bytes from offset %lld; "
            "the file is truncated",
            source->name, (long long)(offset + (int64_t)got), what, size, (long long)offset);
    return TUTTI_OK;
}

static tutti_status make_sink(const char *name, bool buffered, tutti_sink **ret_sink)
{
    tutti_sink *sink = calloc(1, sizeof *sink);
    char *copy = strdup(name);
    uint8_t *buffer = buffered ? malloc(BUFFER_BYTES) : NULL;
    if (sink == NULL || copy == NULL || (buffered && buffer == NULL)) {
        free(sink);
        free(copy);
        free(buffer);
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to write '%s'", name);
    }
    *sink = (tutti_sink){.name = copy, .buffer = buffer};
    *ret_sink = sink;
    return TUTTI_OK;
}

static void free_sink(tutti_sink *sink)
{
    free(sink->name);
    free(sink->buffer);
    free(sink);
}

tutti_status tutti__sink_text(const char *name, tutti_text *text, tutti_sink **ret_sink)
{
    TUTTI_TRY(make_sink(name, false, ret_sink));
    (*ret_sink)->text = text;
    return TUTTI_OK;
}

tutti_status tutti__sink_make(const char *name,
                              tutti_status (*write)(tutti_sink *self, const void *data,
                                                    size_t size),
                              void *inside, tutti_sink **ret_sink)
{
    TUTTI_TRY(make_sink(name, false, ret_sink));
    (*ret_sink)->write = write;
    (*ret_sink)->inside = inside;
    return TUTTI_OK;
}

tutti_status tutti__sink_file(const char *path, tutti_file_mode mode, tutti_sink **ret_sink)
{
    TUTTI_REQUIRE(path);
    const tutti_world *world = tutti__world();
    tutti_sink *sink = NULL;
    TUTTI_TRY(make_sink(path, true, &sink));
    tutti_status status = world->open_file(world->self, path, mode, &sink->file, &sink->appended);
    if (status != TUTTI_OK)
        free_sink(sink);
    else
        *ret_sink = sink;
    return status;
}

static tutti_status stream_put(tutti_sink *sink, int64_t offset, const void *data, size_t size)
{
    const tutti_world *world = tutti__world();
    return world->write_at(world->self, sink->file, sink->appended + offset, data, size);
}

tutti_status tutti__sink_flush(tutti_sink *sink)
{
    if (sink->waiting == 0)
        return TUTTI_OK;
    TUTTI_TRY(stream_put(sink, sink->size - (int64_t)sink->waiting, sink->buffer, sink->waiting));
    sink->waiting = 0;
    return TUTTI_OK;
}

static tutti_status write_text(tutti_sink *sink, const void *data, size_t size)
{
    tutti__text_bytes(sink->text, data, size);
    if (sink->text->failed)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for %lld bytes of '%s'",
                          (long long)(sink->size + (int64_t)size), sink->name);
    sink->size += (int64_t)size;
    return TUTTI_OK;
}

tutti_status tutti__sink_write(tutti_sink *sink, const void *data, size_t size)
{
    if (sink->text != NULL)
        return write_text(sink, data, size);
    if (sink->write != NULL) {
        TUTTI_TRY(sink->write(sink, data, size));
        sink->size += (int64_t)size;
        return TUTTI_OK;
    }
    if (size > BUFFER_BYTES - sink->waiting)
        TUTTI_TRY(tutti__sink_flush(sink));
    if (size >= BUFFER_BYTES) {
        TUTTI_TRY(stream_put(sink, sink->size, data, size));
    } else if (size > 0) {
        memcpy(sink->buffer + sink->waiting, data, size);
        sink->waiting += size;
    }
    sink->size += (int64_t)size;
    return TUTTI_OK;
}

tutti_status tutti__sink_patch(tutti_sink *sink, int64_t offset, const void *data, size_t size)
{
    if (sink->write != NULL || offset < 0 || offset > sink->size ||
        (int64_t)size > sink->size - offset)
        return tutti_fail(TUTTI_INTERNAL, "%s: bytes %lld to %lld were never written", sink->name,
                          (long long)offset, (long long)offset + (long long)size);
    if (sink->text != NULL) {
        memcpy(sink->text->data + (sink->text->size - (size_t)sink->size) + offset, data, size);
        return TUTTI_OK;
    }
    TUTTI_TRY(tutti__sink_flush(sink));
    return stream_put(sink, offset, data, size);
}

tutti_status tutti__sink_commit(tutti_sink *sink)
{
    return tutti__sink_end(sink, TUTTI_OK);
}

void tutti__sink_abort(tutti_sink *sink)
{
    tutti__sink_end(sink, TUTTI_CANCELLED);
}

tutti_status tutti__sink_end(tutti_sink *sink, tutti_status status)
{
    if (sink == NULL)
        return status;
    const tutti_world *world = tutti__world();
    if (status == TUTTI_OK)
        status = tutti__sink_flush(sink);
    if (sink->file != NULL && status == TUTTI_OK)
        status = world->close_file(world->self, sink->file, true);
    else if (sink->file != NULL)
        world->close_file(world->self, sink->file, false);
    if (sink->finish != NULL)
        status = sink->finish(sink, status);
    free_sink(sink);
    return status;
}
