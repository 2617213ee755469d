/* lines.c: see lines.h. */
#include "io/lines.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES ((size_t)1 << 16)

void tutti__lines_open(tutti_source *source, char quote, size_t limit, tutti_lines *ret_lines)
{
    *ret_lines = (tutti_lines){
        .source = source, .quote = quote, .limit = limit != 0 ? limit : (size_t)64 << 20};
}

void tutti__lines_close(tutti_lines *lines)
{
    tutti__source_close(lines->source);
    free(lines->buffer);
    *lines = (tutti_lines){0};
}

int64_t tutti__lines_tell(const tutti_lines *lines)
{
    return lines->read - (int64_t)(lines->end - lines->start);
}

/* Moves what is left to the front and reads behind it, in a larger buffer when it is full. */
static tutti_status refill(tutti_lines *l)
{
    size_t left = l->end - l->start, got;
    if (left > l->limit)
        return tutti_fail(TUTTI_TOO_LARGE,
                          "%s: the line that begins at offset %lld (line %lld) has more than %zu "
                          "bytes, the most allowed here",
                          l->source->name, (long long)tutti__lines_tell(l),
                          (long long)l->number + 1, l->limit);
    if (left > 0 && l->start > 0)
        memmove(l->buffer, l->buffer + l->start, left);
    l->start = 0;
    l->end = left;
    if (left == l->capacity) {
        size_t room = l->capacity != 0 ? 2 * l->capacity : FIRST_BYTES;
        char *grown = realloc(l->buffer, room + 1);
        if (grown == NULL)
            return tutti_fail(TUTTI_NO_MEMORY, "%s: no memory for a line of %zu bytes",
                              l->source->name, room);
        l->buffer = grown;
        l->capacity = room;
    }
    TUTTI_TRY(
        tutti__source_some(l->source, l->read, l->buffer + l->end, l->capacity - l->end, &got));
    l->read += (int64_t)got;
    l->end += got;
    l->ended = got == 0;
    return TUTTI_OK;
}

/* The next line's end, looked for from buffer[*at] on; NULL when it is not there yet. */
static char *find_end(const tutti_lines *l, size_t *at, bool *quoted, int64_t *inside)
{
    for (; *at < l->end; (*at)++) {
        char c = l->buffer[*at];
        if (c == '\n' && !*quoted)
            return l->buffer + *at;
        *inside += c == '\n';
        *quoted ^= l->quote != '\0' && c == l->quote;
    }
    return NULL;
}

tutti_status tutti__lines_next(tutti_lines *l, char **ret_text, size_t *ret_size)
{
    size_t scanned = 0; /* bytes of this line that hold no end */
    bool quoted = false;
    int64_t inside = 0;
    for (;;) {
        size_t at = l->start + scanned;
        char *end = l->buffer != NULL ? find_end(l, &at, &quoted, &inside) : NULL;
        scanned = at - l->start;
        if (end == NULL && !l->ended) {
            TUTTI_TRY(refill(l));
            continue;
        }
        if (l->buffer == NULL || (end == NULL && l->start == l->end)) {
            *ret_text = NULL;
            *ret_size = 0;
            return TUTTI_OK;
        }
        char *text = l->buffer + l->start;
        size_t size = end != NULL ? (size_t)(end - text) : l->end - l->start;
        l->start += size + (end != NULL);
        size -= size > 0 && text[size - 1] == '\r';
        text[size] = '\0';
        l->number += 1 + inside;
        *ret_text = text;
        *ret_size = size;
        return TUTTI_OK;
    }
}
