/* lines.h: text, line by line. */
#ifndef TUTTI_IO_LINES_H
#define TUTTI_IO_LINES_H

#include "io/stream.h"

typedef struct tutti_lines {
    tutti_source *source;
    char quote; /* a line does not end between two of these; 0 for none */
    size_t limit;
    char *buffer;
    size_t start, end, capacity; /* bytes not given yet: buffer[start, end) */
    int64_t read;                /* bytes taken from the source */
    int64_t number;              /* lines given so far; ends of lines in quotes count too */
    bool ended;
} tutti_lines;

/* Takes the source over. `limit` bounds one line (0: 64 MiB). */
void tutti__lines_open(tutti_source *source, char quote, size_t limit, tutti_lines *ret_lines);
/* The next line without its end (\n or \r\n), NUL-terminated, valid until the next call, the
 * caller's to change; NULL at the end of the text. The last line needs no end. */
tutti_status tutti__lines_next(tutti_lines *lines, char **ret_text, size_t *ret_size);
/* Offset in the text where the next line begins. */
int64_t tutti__lines_tell(const tutti_lines *lines);
void tutti__lines_close(tutti_lines *lines); /* zeroed is fine */

#endif
