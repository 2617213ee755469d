/* outlet.c: the launcher's own stdout and stderr, without ever waiting for their reader: who pages
 * through the output, or has stopped, must not keep signals from the job.
 *
 * What the reader has not taken yet waits in one queue, in the order in which it came: where both
 * streams are one file, their lines stay in order too. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/run/run.h"

typedef enum kind {
    UNKNOWN,
    ANY,       /* takes all at once: files, /dev/null */
    UNBLOCKED, /* a pipe or a terminal, opened again to be so */
    SOCKET,
    CAREFUL, /* a pipe or a terminal that cannot be opened again: asked before each piece */
} kind;

typedef struct way {
    kind kind;
    int fd;
} way;

typedef struct piece {
    int stream;
    size_t size;
} piece;

static way ways[2] = {{UNKNOWN, STDOUT_FILENO}, {UNKNOWN, STDERR_FILENO}};
static tutti_text waiting;
static size_t sent; /* of `waiting` */
static TUTTI_VEC(piece) pieces;
static size_t first; /* of `pieces` */
static bool reader_gone, lost;

bool tutti__outlet_closed(void)
{
    return reader_gone;
}

bool tutti__outlet_lost(void)
{
    return lost;
}

/* The job goes on: what it computes is worth more than what it says. What comes later is tried
 * again, since disks are emptied. */
static void lose(int stream, int error)
{
    if (!lost)
        fprintf(stderr,
                "tutti run: cannot write the ranks' output to standard %s: %s; it is lost, the job "
                "goes on and ends with an exit code other than 0\n",
                stream == 1 ? "output" : "error", strerror(error));
    lost = true;
}

size_t tutti__outlet_waiting(void)
{
    return waiting.size - sent;
}

/* O_NONBLOCK belongs to what is open, which we share with the shell and others: the same pipe is
 * opened once more, for us alone. */
static way *find_way(int stream)
{
    way *w = &ways[stream - 1];
    struct stat about;
    char path[32];
    if (w->kind != UNKNOWN)
        return w;
    w->kind = ANY;
    if (fstat(w->fd, &about) != 0)
        return w;
    if (S_ISSOCK(about.st_mode))
        w->kind = SOCKET;
    if (!S_ISFIFO(about.st_mode) && isatty(w->fd) != 1)
        return w;
    snprintf(path, sizeof path, "/proc/self/fd/%d", w->fd);
    int again = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    w->kind = again >= 0 ? UNBLOCKED : CAREFUL;
    w->fd = again >= 0 ? again : w->fd;
    return w;
}

static ssize_t write_some(const way *w, const char *data, size_t size)
{
    struct pollfd room = {w->fd, POLLOUT, 0};
    if (w->kind == SOCKET)
        return send(w->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (w->kind != CAREFUL)
        return write(w->fd, data, size);
    if (poll(&room, 1, 0) != 1) {
        errno = EAGAIN;
        return -1;
    }
    return write(w->fd, data, size < PIPE_BUF ? size : PIPE_BUF); /* for so much there is room */
}

static void forget(void)
{
    waiting.size = sent = 0;
    pieces.count = first = 0;
}

static void outlet_advance(size_t size)
{
    piece *p = &pieces.data[first];
    sent += size;
    p->size -= size;
    first += p->size == 0;
    if (first == pieces.count)
        forget();
}

void tutti__outlet_flush(void)
{
    while (first < pieces.count) {
        const piece *p = &pieces.data[first];
        ssize_t done = write_some(find_way(p->stream), waiting.data + sent, p->size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno == EAGAIN)
            return;
        if (done < 0 && errno == EPIPE) { /* SIGPIPE is ignored, for the stations' pipes */
            reader_gone = true;
            forget();
            return;
        }
        if (done < 0)
            lose(p->stream, errno);
        outlet_advance(done < 0 ? p->size : (size_t)done);
    }
}

int tutti__outlet_fd(void)
{
    return first < pieces.count ? find_way(pieces.data[first].stream)->fd : -1;
}

/* What has been sent makes room. */
static void compact(void)
{
    if (sent < waiting.size - sent)
        return;
    memmove(waiting.data, waiting.data + sent, waiting.size - sent);
    waiting.size -= sent;
    sent = 0;
    memmove(pieces.data, pieces.data + first, (pieces.count - first) * sizeof *pieces.data);
    pieces.count -= first;
    first = 0;
}

void tutti__outlet_put(int stream, const char *data, size_t size)
{
    piece next = {stream, 0};
    if (reader_gone || size == 0)
        return;
    if (sent > 0)
        compact();
    if (pieces.count == first || pieces.data[pieces.count - 1].stream != stream)
        if (!TUTTI_VEC_PUSH(&pieces, next)) {
            lose(stream, ENOMEM);
            return;
        }
    tutti__text_bytes(&waiting, data, size);
    if (waiting.failed)
        lose(stream, ENOMEM);
    if (!waiting.failed)
        pieces.data[pieces.count - 1].size += size;
    else if (pieces.data[pieces.count - 1].size == 0)
        pieces.count--;
    waiting.failed = false; /* what comes later need not be lost */
}
