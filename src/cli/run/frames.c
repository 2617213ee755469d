/* frames.c: what launcher and stations say to each other. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/run.h"

enum { HEAD = 5 };

static bool write_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t done = write(fd, data, size);
        if (done < 0 && errno != EINTR)
            return false;
        if (done > 0) {
            data += done;
            size -= (size_t)done;
        }
    }
    return true;
}

bool tutti__frame_write(int fd, char type, const void *data, size_t size)
{
    char head[HEAD] = {type};
    for (int i = 0; i < 4; i++)
        head[1 + i] = (char)(size >> (8 * i));
    return write_all(fd, head, sizeof head) && write_all(fd, data, size);
}

bool tutti__frame_text(int fd, char type, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return size >= 0 && (size_t)size < sizeof text &&
           tutti__frame_write(fd, type, text, (size_t)size);
}

bool tutti__frames_fill(tutti_frames *frames)
{
    if (frames->used > 0) {
        memmove(frames->data, frames->data + frames->used, frames->size - frames->used);
        frames->size -= frames->used;
        frames->used = 0;
    }
    if (frames->capacity - frames->size < 65536) {
        char *grown = realloc(frames->data, frames->size + 131072);
        if (grown == NULL)
            return false;
        frames->data = grown;
        frames->capacity = frames->size + 131072;
    }
    ssize_t got;
    do /* one byte stays free for the NUL */
        got = read(frames->fd, frames->data + frames->size, frames->capacity - frames->size - 1);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return got < 0 && errno == EAGAIN;
    frames->size += (size_t)got;
    return true;
}

int tutti__frames_next(tutti_frames *frames, tutti_frame *ret_frame)
{
    size_t left = frames->size - frames->used;
    const unsigned char *at = (const unsigned char *)frames->data + frames->used;
    if (left < HEAD)
        return 0;
    uint32_t size = at[1] | (uint32_t)at[2] << 8 | (uint32_t)at[3] << 16 | (uint32_t)at[4] << 24;
    if (size > TUTTI_RUN_FRAME_BYTES)
        return -1;
    if (left - HEAD < size)
        return 0;
    /* The data moves over its own head, which makes room for the NUL. */
    char *data = frames->data + frames->used;
    *ret_frame = (tutti_frame){.type = (char)at[0], .size = size, .data = data};
    memmove(data, data + HEAD, size);
    data[size] = '\0';
    frames->used += HEAD + size;
    return 1;
}

void tutti__frames_free(tutti_frames *frames)
{
    free(frames->data);
    *frames = (tutti_frames){.fd = -1};
}
