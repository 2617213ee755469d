/* output.c: what ranks print, line by line, so that lines of several ranks never mix. */
#include <stdio.h>
#include <string.h>

#include "cli/run/run.h"

enum {
    MOST_LINE = 16 << 20, /* a longer one is cut, so that a rank cannot fill the memory */
    KEPT_LINE = 65536     /* room that is kept for the next one */
};

/* The end of what a rank said, for the report of its failure. stderr counts more than stdout: once
 * something came there, only that is kept. */
static void keep_tail(tutti_run_output *output, int stream, const char *data, size_t size)
{
    size_t room = sizeof output->tail;
    if (stream == 1)
        return;
    if (size >= room) {
        memcpy(output->tail, data + size - room, room);
        output->tail_size = room;
        return;
    }
    if (output->tail_size + size > room) {
        size_t gone = output->tail_size + size - room;
        memmove(output->tail, output->tail + gone, output->tail_size - gone);
        output->tail_size -= gone;
    }
    memcpy(output->tail + output->tail_size, data, size);
    output->tail_size += size;
}

static void print_line(const tutti_run_output *output, int stream, const tutti_text *line,
                       int width)
{
    char prefix[32];
    int size = snprintf(prefix, sizeof prefix, "[%*d] ", width, output->rank);
    tutti__outlet_put(stream, prefix, (size_t)size);
    tutti__outlet_put(stream, line->data, line->size); /* bytes: a NUL may be among them */
    tutti__outlet_put(stream, "\n", 1);
}

void tutti__output_add(tutti_run_output *output, int stream, const char *data, size_t size,
                       int width)
{
    tutti_text *line = &output->line[stream - 1];
    keep_tail(output, stream, data, size);
    if (output->raw) {
        tutti__outlet_put(stream, data, size);
        tutti__outlet_flush();
        return;
    }
    while (size > 0) {
        const char *end = memchr(data, '\n', size);
        size_t part = end != NULL ? (size_t)(end - data) : size;
        tutti__text_bytes(line, data, part);
        if (end != NULL || line->size > MOST_LINE) {
            print_line(output, stream, line, width);
            line->size = 0;
            if (line->capacity > KEPT_LINE)
                tutti__text_free(line);
        }
        part += end != NULL;
        data += part;
        size -= part;
    }
    tutti__outlet_flush();
}

void tutti__output_end(tutti_run_output *output, int width)
{
    for (int stream = 1; stream <= 2; stream++) {
        tutti_text *line = &output->line[stream - 1];
        if (line->size > 0)
            print_line(output, stream, line, width);
        tutti__text_free(line);
    }
    tutti__outlet_flush();
}
