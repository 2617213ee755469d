/* world.h: the one seam for time, sockets and files, so that a simulator can stand in for them.
 * Nothing else in the house calls clock_gettime, open, fopen or socket. */
#ifndef TUTTI_BASE_WORLD_H
#define TUTTI_BASE_WORLD_H

#include "base/status.h"

/* How a file is opened. REPLACE writes a temporary file beside the path, which takes its place when
 * it is closed with `keep`; until then nothing at the path changes. A path that is a symbolic link
 * stays one: the file that it points to is replaced, by one beside that. REPLACE_UNREAD is the same
 * for what is written often and seldom read: where the file system can, it goes past its cache.
 * APPEND writes at the end of the file itself, made when it is missing, so that others can follow
 * it as it grows. */
typedef enum tutti_file_mode {
    TUTTI_FILE_READ,
    TUTTI_FILE_REPLACE,
    TUTTI_FILE_REPLACE_UNREAD,
    TUTTI_FILE_APPEND,
} tutti_file_mode;
typedef struct tutti_file tutti_file; /* belongs to the world that opened it */

/* Where a socket is or goes: a sockaddr of the system. */
typedef struct tutti_address {
    _Alignas(8) unsigned char bytes[128];
    uint32_t size;
} tutti_address;

/* What is awaited on a socket (or any descriptor of the system), and what came. */
enum { TUTTI_WAIT_READ = 1, TUTTI_WAIT_WRITE = 2, TUTTI_WAIT_END = 4 /* error or hang-up */ };
typedef struct tutti_wait {
    int socket; /* negative: left out */
    int wants;
    int ret_came;
} tutti_wait;

typedef struct tutti_world {
    int64_t (*now_ns)(void *self);  /* monotonic */
    int64_t (*wall_ns)(void *self); /* since 1970 */
    void (*sleep_ns)(void *self, int64_t ns);
    /* Reads a whole file of at most `limit` bytes; *ret_data is from malloc, NUL-terminated beyond
     * size. */
    tutti_status (*read_file)(void *self, const char *path, size_t limit, void **ret_data,
                              size_t *ret_size);
    /* Maps a whole file of at most `limit` bytes, to be read and given to unmap_file. Pages are
     * read when they are touched: a file that is made shorter meanwhile kills the process that
     * touches them, one that is written into changes under the reader; one that is replaced
     * (renamed over, as all of ours are) does neither. TUTTI_UNSUPPORTED: it cannot be mapped, and
     * may be read instead. */
    tutti_status (*map_file)(void *self, const char *path, size_t limit, void **ret_data,
                             size_t *ret_size);
    void (*unmap_file)(void *self, void *data, size_t size);
    /* Writes atomically: temporary file beside it, fsync, rename, fsync of the folder; behind
     * symbolic links like REPLACE. */
    tutti_status (*write_file)(void *self, const char *path, const void *data, size_t size);
    /* Makes a folder, and those above it that are missing; one that is there is fine. */
    tutti_status (*make_folder)(void *self, const char *path);
    /* Regular files only. *ret_size is the size at the moment of opening, 0 for REPLACE. */
    tutti_status (*open_file)(void *self, const char *path, tutti_file_mode mode,
                              tutti_file **ret_file, int64_t *ret_size);
    /* Fills `data`; *ret_got is less than `size` only at the file's end. Threads may share a file
     * that is open to read. */
    tutti_status (*read_at)(void *self, tutti_file *file, int64_t offset, void *data, size_t size,
                            size_t *ret_got);
    tutti_status (*write_at)(void *self, tutti_file *file, int64_t offset, const void *data,
                             size_t size);
    tutti_status (*sync_file)(void *self, tutti_file *file);
    /* Ends the file's life in every case. With `keep`, what was written is durable at the path when
     * this succeeds (fsync, rename, fsync of the folder); without, or after a failure, REPLACE
     * leaves the path as it was. */
    tutti_status (*close_file)(void *self, tutti_file *file, bool keep);
    /* Names in a folder, without "." and "..", sorted by bytes; one block from malloc, *ret_names
     * is NULL when there are none. */
    tutti_status (*list_folder)(void *self, const char *path, char ***ret_names, size_t *ret_count);
    /* Removes a file, or an empty folder. */
    tutti_status (*remove_file)(void *self, const char *path);
    /* Gives the file at `path` (behind symbolic links) a second name, in the place of what had that
     * name before. */
    tutti_status (*link_file)(void *self, const char *path, const char *second);
    /* Removes a temporary file of REPLACE or write_file ("<path>.<process>-<number>.tmp") when its
     * writer is no more. One that is still being written stays; that is no error. */
    tutti_status (*remove_abandoned)(void *self, const char *temporary);
    /* Addresses of a name, or of every interface where `host` is NULL; at most `limit`. Blocks as
     * long as the system's resolver does. NOT_FOUND when the name does not resolve. */
    tutti_status (*resolve)(void *self, const char *host, int port, size_t limit,
                            tutti_address *ret_addresses, size_t *ret_count);
    /* Sockets never block, carry streams, and are not inherited by other programs. */
    tutti_status (*listen)(void *self, const tutti_address *at, int *ret_socket, int *ret_port);
    /* These return what was asked for, or -errno: -EAGAIN when it would block. `connect` begins,
     * from the address `from` unless that is NULL; the socket is writable when it has ended, and
     * `connected` is then 0 or -errno. */
    int (*accept)(void *self, int listener, tutti_address *ret_from);
    int (*connect)(void *self, const tutti_address *to, const tutti_address *from);
    int (*connected)(void *self, int socket);
    int64_t (*send)(void *self, int socket, const void *data, size_t size);
    int64_t (*receive)(void *self, int socket, void *data, size_t size); /* 0: the other side ended
                                                                          */
    /* How many of `waits` have something; 0 after `timeout_ns` (TUTTI_NO_DEADLINE: never). */
    int (*wait)(void *self, tutti_wait *waits, size_t count, int64_t timeout_ns);
    void (*end_sending)(void *self, int socket); /* the other side reads to the end, then sees it */
    void (*close_socket)(void *self, int socket);
    void *self;
} tutti_world;

/* The world in force; the real one unless replaced. */
const tutti_world *tutti__world(void);
/* Replaces it (NULL brings the real one back). For simulators and tests; not thread-safe. */
void tutti__world_replace(const tutti_world *world);

static inline int64_t tutti__now_ns(void)
{
    const tutti_world *w = tutti__world();
    return w->now_ns(w->self);
}

/* Whether a file whose path came from a file beside it is where that may reach: what it leads to,
 * through symbolic links, is below the first `folder` bytes of the path (0: the present folder).
 * True for what the system does not know: that is the world's to judge. */
bool tutti__stays_below(const char *path, size_t folder);

/* "10.0.0.2", "fe80::1"; without the port. */
void tutti__address_text(const tutti_address *address, char *ret_text, size_t size);
int tutti__address_port(const tutti_address *address);
bool tutti__address_loopback(const tutti_address *address);

/* The CPU's cycle or tick counter: cheap (a few ns), monotonic on one core, for the trace only. */
static inline uint64_t tutti__ticks(void)
{
#if defined(__aarch64__)
    uint64_t t;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
    return t;
#elif defined(__x86_64__)
    uint32_t lo, hi;
    __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
    return ((uint64_t)hi << 32) | lo;
#else
    return (uint64_t)tutti__now_ns();
#endif
}
/* Nanoseconds per tick, measured once. */
double tutti__tick_ns(void);

/* Waiting on a condition with a deadline: absolute monotonic ns; INT64_MAX waits for ever. */
#define TUTTI_NO_DEADLINE INT64_MAX

#endif
