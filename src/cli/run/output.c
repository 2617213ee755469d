/* output.c: what ranks print, line by line, so that lines of several ranks never mix. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/run/run.h"

enum { MOST_LINE = 65536 };

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

static bool reader_gone;

bool tutti__output_closed(void)
{
    return reader_gone;
}

/* SIGPIPE is ignored, for the stations' pipes: what it would say has to be asked for. */
static void send_out(FILE *to)
{
    if (fflush(to) != 0 && errno == EPIPE)
        reader_gone = true;
}

static void print_line(const tutti_run_output *output, FILE *to, const tutti_text *line, int width)
{
    if (reader_gone)
        return;
    fprintf(to, "[%*d] ", width, output->rank);
    if (line->size > 0)
        fwrite(line->data, 1, line->size, to); /* bytes, not text: a NUL may be among them */
    fputc('\n', to);
    send_out(to);
}

void tutti__output_add(tutti_run_output *output, int stream, const char *data, size_t size,
                       int width)
{
    FILE *to = stream == 1 ? stdout : stderr;
    tutti_text *line = &output->line[stream - 1];
    keep_tail(output, stream, data, size);
    if (output->raw) {
        if (!reader_gone) {
            fwrite(data, 1, size, to);
            send_out(to);
        }
        return;
    }
    while (size > 0) {
        const char *end = memchr(data, '\n', size);
        size_t part = end != NULL ? (size_t)(end - data) : size;
        tutti__text_bytes(line, data, part);
        if (end != NULL || line->size > MOST_LINE) {
            print_line(output, to, line, width);
            line->size = 0;
        }
        part += end != NULL;
        data += part;
        size -= part;
    }
}

void tutti__output_end(tutti_run_output *output, int width)
{
    for (int stream = 1; stream <= 2; stream++) {
        tutti_text *line = &output->line[stream - 1];
        if (line->size > 0)
            print_line(output, stream == 1 ? stdout : stderr, line, width);
        tutti__text_free(line);
    }
}
