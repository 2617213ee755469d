/* text_files.c: the lines of text files, read as they are asked for.
 *
 * Of a range of bytes a process has the lines that begin in it: it starts behind the first line end
 * at or after begin - 1, and reads the line that begins before `end` to its end. */
#include <stdlib.h>
#include <string.h>

#include "data/source/paths.h"
#include "io/inflate.h"

enum { PIECE = 1 << 16 };
#define LINE_LIMIT ((size_t)1 << 30)

typedef struct state {
    tutti_file_span span;
    tutti_source *source; /* NULL: none is open */
    char *bytes;          /* [used, filled) are not handed out yet */
    size_t used, filled, capacity;
    int64_t at; /* in the file, of bytes + used */
    bool ended;
} state;

/* More bytes behind those that are there. */
static tutti_status read_more(state *s)
{
    if (s->filled > s->used)
        memmove(s->bytes, s->bytes + s->used, s->filled - s->used);
    s->filled -= s->used;
    s->used = 0;
    if (s->filled > LINE_LIMIT)
        return tutti_fail(TUTTI_TOO_LARGE, "%s: the line at offset %lld is longer than %zu bytes",
                          s->source->name, (long long)s->at, LINE_LIMIT);
    if (s->capacity - s->filled < PIECE) {
        size_t capacity = 2 * s->capacity + PIECE;
        char *grown = realloc(s->bytes, capacity);
        if (!grown)
            return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for a line", s->source->name);
        s->bytes = grown;
        s->capacity = capacity;
    }
    size_t got;
    TUTTI_TRY(tutti__source_some(s->source, s->at + (int64_t)s->filled, s->bytes + s->filled, PIECE,
                                 &got));
    s->filled += got;
    s->ended = got < PIECE;
    return TUTTI_OK;
}

/* The next line of the file with its end; *ret_size 0 at the file's end. */
static tutti_status take_line(state *s, const char **ret_line, size_t *ret_size)
{
    size_t looked = 0;
    for (;;) {
        char *from = s->bytes ? s->bytes + s->used : NULL;
        size_t left = s->filled - s->used;
        char *end = left > looked ? memchr(from + looked, '\n', left - looked) : NULL;
        if (end || s->ended) {
            *ret_line = from;
            *ret_size = end ? (size_t)(end - from) + 1 : left;
            s->used += *ret_size;
            s->at += (int64_t)*ret_size;
            return TUTTI_OK;
        }
        looked = left;
        TUTTI_TRY(read_more(s));
    }
}

static void leave_file(state *s)
{
    tutti__source_close(s->source);
    s->source = NULL;
}

static tutti_status enter_file(const tutti_paths *paths, state *s)
{
    const char *path = paths->list[s->span.file], *line;
    size_t size;
    bool cuts = s->span.sizes != NULL;
    TUTTI_TRY(cuts ? tutti__source_file(path, &s->source)
                   : tutti__source_file_unpacked(path, &s->source));
    s->used = s->filled = 0;
    s->at = s->span.begin > 0 ? s->span.begin - 1 : 0;
    s->ended = false;
    return s->span.begin > 0 ? take_line(s, &line, &size) : TUTTI_OK;
}

/* The next line that is this process's; *ret_size 0 behind the last. */
static tutti_status next_line(tutti_iterator *iterator, const char **ret_line, size_t *ret_size)
{
    const tutti_paths *paths = iterator->dataset->settings;
    state *s = iterator->state;
    for (*ret_size = 0; *ret_size == 0;) {
        if (!s->source) {
            TUTTI_TRY(tutti__paths_next(paths, iterator->share, &s->span));
            if (s->span.file >= paths->count)
                return TUTTI_OK;
            TUTTI_TRY(enter_file(paths, s));
        }
        if (s->at < s->span.end)
            TUTTI_TRY(take_line(s, ret_line, ret_size));
        if (*ret_size == 0)
            leave_file(s);
    }
    return TUTTI_OK;
}

static tutti_status text_files_next(tutti_iterator *iterator, tutti_element *ret)
{
    const char *line;
    size_t size;
    tutti_tensor *made;
    tutti_status status = next_line(iterator, &line, &size);
    if (status == TUTTI_OK && size == 0)
        return TUTTI_OK;
    if (status == TUTTI_OK) {
        size -= line[size - 1] == '\n';
        size -= size > 0 && line[size - 1] == '\r';
        tutti_string text = {line, (int64_t)size};
        status = tutti_tensor_from(TUTTI_STRING, 0, NULL, &text, &made);
    }
    if (status == TUTTI_OK)
        status = tutti_element_set(ret, 0, made);
    return tutti__element_failed(iterator->dataset, iterator->epoch, iterator->delivered, status);
}

static tutti_status text_files_skip(tutti_iterator *iterator, int64_t count, int64_t *ret_skipped)
{
    int64_t done = 0;
    for (; done < count; done++) {
        const char *line;
        size_t size;
        TUTTI_TRY(tutti__iterator_check(iterator));
        TUTTI_TRY(next_line(iterator, &line, &size));
        if (size == 0)
            break;
    }
    *ret_skipped = done;
    return TUTTI_OK;
}

static void text_files_close(tutti_iterator *iterator)
{
    state *s = iterator->state;
    leave_file(s);
    free(s->bytes);
    tutti__paths_end(&s->span);
}

extern const tutti_dataset_def tutti_dataset_def_text_files;

tutti_dataset *tutti_text_files_with(tutti_job *job, const char *path,
                                     const tutti_text_files_options *options)
{
    tutti_dataset *dataset =
        tutti__paths_dataset(&tutti_dataset_def_text_files, job, path, options ? options->count : 0,
                             options ? options->paths : NULL);
    if (!dataset)
        return NULL;
    dataset->info.components = 1;
    dataset->info.names[0] = "line";
    dataset->info.types[0] = tutti_type_make(TUTTI_STRING, 0, NULL);
    return dataset;
}

const tutti_dataset_def tutti_dataset_def_text_files = {
    .name = "text_files",
    .doc = "the lines of text files, read as they are asked for",
    .settings_size = sizeof(tutti_paths),
    .state_size = sizeof(state),
    .next = text_files_next,
    .skip = text_files_skip,
    .close = text_files_close,
    .reads = tutti__paths_reads,
};
