/* world_whole.c: the real world's files as a whole: read, mapped, replaced; and folders made. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/pool.h"
#include "base/standard.h"
#include "base/world_files.h"

tutti_status tutti__fail_path(int error, const char *verb, const char *path)
{
    tutti_status status = error == ENOENT || error == ENOTDIR ? TUTTI_NOT_FOUND
                          : error == ENOMEM                   ? TUTTI_NO_MEMORY
                                                              : TUTTI_IO;
    return tutti_fail(status, "cannot %s '%s': %s", verb, path, strerror(error));
}

static tutti_status fail_limit(const char *path, size_t limit)
{
    return tutti_fail(TUTTI_TOO_LARGE, "'%s' is larger than %zu bytes, the most allowed here", path,
                      limit);
}

/* Only regular files are read: a pipe could block for ever. `*ret` is a hint, since files of /proc
 * say 0 and others may grow. */
static tutti_status check_file(int fd, const char *path, size_t limit, size_t *ret)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return tutti__fail_path(errno, "look at", path);
    if (!S_ISREG(about.st_mode))
        return tutti_fail(TUTTI_INVALID, "'%s' is not a regular file", path);
    if ((uintmax_t)about.st_size > limit)
        return fail_limit(path, limit);
    *ret = (size_t)about.st_size;
    return TUTTI_OK;
}

/* Grows *data to hold `room` bytes and a NUL; large files go into large pages. */
static bool make_room(char **data, size_t room)
{
    size_t padded = (room + 64) / 64 * 64;
    char *grown = *data == NULL ? tutti__aligned_alloc(64, padded) : realloc(*data, padded);
    if (grown != NULL)
        *data = grown;
    return grown != NULL;
}

/* A stretch of a file that one of several threads reads: memory is mapped page by page as it is
 * written, which takes longer than the copy. */
enum { READERS = 4, STRETCH = 4 << 20, READ_AT_ONCE = 1 << 20 };

typedef struct stretch {
    int fd;
    char *data;
    size_t at, end; /* `at` moves to where the reading ended */
} stretch;

static void *read_stretch(void *context)
{
    stretch *s = context;
    while (s->at < s->end) {
        size_t left = s->end - s->at;
        ssize_t got =
            pread(s->fd, s->data + s->at, left < READ_AT_ONCE ? left : READ_AT_ONCE, (off_t)s->at);
        if (got <= 0 && !(got < 0 && errno == EINTR))
            break;
        s->at += got > 0 ? (size_t)got : 0;
    }
    return NULL;
}

/* Reads the first `size` bytes on several threads; how many of them came without a gap. What did
 * not come, for whatever reason, the caller reads again. */
static size_t read_beside(int fd, char *data, size_t size)
{
    stretch stretches[READERS];
    pthread_t threads[READERS];
    bool started[READERS] = {false};
    size_t count = size / STRETCH < READERS ? size / STRETCH : READERS, whole = 0;
    count = count > (size_t)tutti__cpu_count() ? (size_t)tutti__cpu_count() : count;
    for (size_t i = 0; count > 1 && i < count; i++) {
        stretches[i] = (stretch){fd, data, size / count * i, size / count * (i + 1)};
        started[i] = i > 0 && pthread_create(&threads[i], NULL, read_stretch, &stretches[i]) == 0;
    }
    for (size_t i = 0; count > 1 && i < count; i++) {
        if (started[i])
            pthread_join(threads[i], NULL);
        else
            read_stretch(&stretches[i]);
        whole = whole == size / count * i ? stretches[i].at : whole;
    }
    return whole;
}

/* Room is never more than limit + 1 bytes: the byte too many is how an oversized file is seen. */
static tutti_status read_to_end(int fd, const char *path, size_t limit, size_t expected,
                                void **ret_data, size_t *ret_size)
{
    char *data = NULL;
    size_t most = limit + 1, size = 0, room = expected < 4095 ? 4096 : expected + 1;
    tutti_status status = TUTTI_OK;
    if (expected >= 2 * (size_t)STRETCH && make_room(&data, room < most ? room : most))
        size = read_beside(fd, data, expected);
    if (size > 0 && lseek(fd, (off_t)size, SEEK_SET) < 0)
        size = 0;
    for (;;) {
        room = room < most ? room : most;
        if (!make_room(&data, room)) {
            status = tutti_fail(TUTTI_NO_MEMORY, "no memory for %zu bytes of '%s'", room, path);
            break;
        }
        ssize_t got = read(fd, data + size, room - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            status = tutti__fail_path(errno, "read", path);
        if (got <= 0)
            break;
        size += (size_t)got;
        if (size > limit) {
            status = fail_limit(path, limit);
            break;
        }
        if (size == room)
            room *= 2;
    }
    if (status != TUTTI_OK) {
        free(data);
        return status;
    }
    data[size] = '\0';
    *ret_data = data;
    *ret_size = size;
    return TUTTI_OK;
}

tutti_status tutti__real_read_file(void *self, const char *path, size_t limit, void **ret_data,
                                   size_t *ret_size)
{
    TUTTI_UNUSED(self);
    if (limit > PTRDIFF_MAX / 2)
        limit = PTRDIFF_MAX / 2;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tutti__fail_path(errno, "open", path);
    size_t expected = 0;
    tutti_status status = check_file(fd, path, limit, &expected);
    if (status == TUTTI_OK)
        status = read_to_end(fd, path, limit, expected, ret_data, ret_size);
    close(fd);
    return status;
}

tutti_status tutti__real_map_file(void *self, const char *path, size_t limit, void **ret_data,
                                  size_t *ret_size)
{
    TUTTI_UNUSED(self);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tutti__fail_path(errno, "open", path);
    size_t size = 0;
    tutti_status status = check_file(fd, path, limit, &size);
    void *data = status == TUTTI_OK && size > 0 ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0)
                                                : MAP_FAILED;
    close(fd);
    TUTTI_TRY(status);
    if (data == MAP_FAILED)
        return tutti_fail(TUTTI_UNSUPPORTED, "cannot map '%s'", path);
    (void)madvise(data, size, MADV_WILLNEED);
    *ret_data = data;
    *ret_size = size;
    return TUTTI_OK;
}

void tutti__real_unmap_file(void *self, void *data, size_t size)
{
    TUTTI_UNUSED(self);
    (void)munmap(data, size);
}

/* False when somebody took the new file for an abandoned one before it was locked: he holds the
 * lock, or has removed it. Where a file system knows no locks, nobody takes it. */
static bool lock_new_file(int fd)
{
    struct stat about;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno != EWOULDBLOCK;
    return fstat(fd, &about) != 0 || about.st_nlink > 0;
}

bool tutti__is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

bool tutti__is_nonfinite(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

int tutti__open_beside(const char *path, char *name, size_t name_size)
{
    static atomic_uint serial;
    tutti__standard_file_limit();
    for (int attempt = 0; attempt < 1000; attempt++) {
        snprintf(name, name_size, "%s.%ld-%u.tmp", path, (long)getpid(),
                 atomic_fetch_add(&serial, 1));
        int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            return fd;
        if (fd >= 0 && lock_new_file(fd))
            return fd;
        if (fd >= 0)
            close(fd);
    }
    errno = EEXIST;
    return -1;
}

/* Devices, pipes and some file systems know no fsync. */
int tutti__sync(int fd)
{
    int error = 0;
    do
        error = fsync(fd) == 0 ? 0 : errno;
    while (error == EINTR);
    return error == EINVAL || error == EROFS || error == ENOTSUP || error == ENOSYS ? 0 : error;
}

/* The link's text, from the link's folder on unless it begins at the root; NULL with errno. */
static char *follow(const char *link)
{
    const char *slash = strrchr(link, '/');
    size_t folder = slash != NULL ? (size_t)(slash - link) + 1 : 0;
    char *path = malloc(folder + PATH_MAX);
    ssize_t size = path != NULL ? readlink(link, path + folder, PATH_MAX - 1) : -1;
    if (size < 0) {
        free(path);
        return NULL;
    }
    path[folder + (size_t)size] = '\0';
    if (path[folder] == '/')
        memmove(path, path + folder, (size_t)size + 1);
    else
        memcpy(path, link, folder);
    return path;
}

char *tutti__behind_links(const char *path)
{
    char *at = strdup(path);
    struct stat about;
    for (int links = 0; at != NULL && lstat(at, &about) == 0 && S_ISLNK(about.st_mode); links++) {
        char *next = links < 40 ? follow(at) : NULL;
        if (links >= 40)
            errno = ELOOP;
        free(at);
        at = next;
    }
    return at;
}

bool tutti__stays_below(const char *path, size_t folder)
{
    char *real = realpath(path, NULL);
    if (real == NULL)
        return true;
    char *above = folder > 0 ? strndup(path, folder) : strdup(".");
    char *root = above != NULL ? realpath(above, NULL) : NULL;
    size_t size = root != NULL ? strlen(root) : 0;
    bool below = root != NULL && strncmp(real, root, size) == 0 &&
                 (real[size] == '/' || (size == 1 && root[0] == '/'));
    free(real);
    free(above);
    free(root);
    return below;
}

/* Writes and syncs; 0 or an errno. */
static int world_whole_fill(int fd, const char *data, size_t size)
{
    int error = 0;
    while (size > 0 && error == 0) {
        ssize_t put = write(fd, data, size);
        if (put >= 0) {
            data += put;
            size -= (size_t)put;
        } else if (errno != EINTR)
            error = errno;
    }
    return error == 0 ? tutti__sync(fd) : error;
}

/* What is no file, such as /dev/stderr, is written to: a file in its place would be the end of it.
 */
static tutti_status write_special(const char *path, const void *data, size_t size)
{
    /* Opening does not wait for somebody who reads a pipe; writing does. */
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK), error = fd < 0 ? errno : 0;
    if (fd >= 0)
        error = fcntl(fd, F_SETFL, 0) == 0 ? world_whole_fill(fd, data, size) : errno;
    if (fd >= 0)
        close(fd);
    return error == 0 ? TUTTI_OK : tutti__fail_path(error, "write", path);
}

int tutti__sync_folder(const char *path, char *name, size_t name_size)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    snprintf(name, name_size, "%.*s", length == 0 ? 1 : (int)length, length == 0 ? "." : path);
    int fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = tutti__sync(fd);
    close(fd);
    return error;
}

/* Until the rename nothing at `path` changes; after it only the folder's sync can fail. 0 or an
 * errno. */
static int replace(const char *path, char *name, size_t name_size, const void *data, size_t size)
{
    int fd = tutti__open_beside(path, name, name_size);
    if (fd < 0)
        return errno;
    int error = world_whole_fill(fd, data, size);
    if (error == 0 && rename(name, path) != 0)
        error = errno;
    if (error != 0)
        unlink(name);
    close(fd); /* after the rename: until then its lock says that it is not abandoned */
    return error == 0 ? tutti__sync_folder(path, name, name_size) : error;
}

tutti_status tutti__real_write_file(void *self, const char *path, const void *data, size_t size)
{
    TUTTI_UNUSED(self);
    if (tutti__is_nonfinite(path))
        return write_special(path, data, size);
    char *target = tutti__behind_links(path);
    if (target == NULL)
        return tutti__fail_path(errno, "write", path);
    size_t name_size = strlen(target) + 64;
    char *name = malloc(name_size);
    int error = name != NULL ? replace(target, name, name_size, data, size) : ENOMEM;
    free(name);
    free(target);
    return error == 0 ? TUTTI_OK : tutti__fail_path(error, "write", path);
}

/* mkdir for every prefix that ends before a slash, then for the whole path. */
tutti_status tutti__real_make_folder(void *self, const char *path)
{
    TUTTI_UNUSED(self);
    char *name = strdup(path);
    if (name == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory to make the folder '%s'", path);
    int error = 0;
    for (char *at = name; error == 0 && *at != '\0';) {
        at += strspn(at, "/");
        at += strcspn(at, "/");
        char end = *at;
        *at = '\0';
        if (mkdir(name, 0777) != 0 && errno != EEXIST)
            error = errno;
        *at = end;
    }
    struct stat about;
    if (error == 0 && (stat(name, &about) != 0 || !S_ISDIR(about.st_mode)))
        error = ENOTDIR;
    free(name);
    return error == 0 ? TUTTI_OK : tutti__fail_path(error, "make the folder", path);
}
