/* secret.c: loading and guarding the job's secret. */
#define _GNU_SOURCE
#include "cluster/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? text : NULL;
}

void tutti__secret_source(int fd, char *ret_text, size_t size)
{
    const char *file = variable("TUTTI_SECRET_FILE");
    snprintf(ret_text, size, "%s",
             fd >= 0                            ? "launcher"
             : file != NULL                     ? file
             : variable("TUTTI_SECRET") != NULL ? "environment"
                                                : "none");
}

tutti_status tutti__secret_set(const void *bytes, size_t size, const char *source,
                               tutti_secret *ret_secret)
{
    const char *text = bytes;
    while (size > 0 && strchr(" \t\r\n", text[size - 1]) != NULL)
        size--;
    if (size < TUTTI_SECRET_LEAST || size > TUTTI_SECRET_MOST)
        return tutti_fail(TUTTI_INVALID,
                          "the secret from %s has %zu bytes; it needs %d to %d: make one with "
                          "'openssl rand -hex 32'",
                          source, size, TUTTI_SECRET_LEAST, TUTTI_SECRET_MOST);
    uint8_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the secret");
    madvise(page, PAGE, MADV_DONTDUMP);
    (void)mlock(page, PAGE); /* out of swap where the limit allows it */
    memcpy(page, bytes, size);
    *ret_secret = (tutti_secret){page, size};
    return TUTTI_OK;
}

/* Reads from the beginning and leaves the descriptor as it was, for programs that join twice. */
static tutti_status read_descriptor(int fd, const char *source, tutti_secret *ret_secret)
{
    char bytes[TUTTI_SECRET_MOST + 1];
    ssize_t got;
    do
        got = pread(fd, bytes, sizeof bytes, 0);
    while (got < 0 && errno == EINTR);
    tutti_status status = got < 0 ? tutti_fail(TUTTI_IO, "cannot read the secret from %s: %s",
                                               source, strerror(errno))
                                  : tutti__secret_set(bytes, (size_t)got, source, ret_secret);
    explicit_bzero(bytes, sizeof bytes);
    return status;
}

/* The launcher's descriptor is a file in memory without a name (memfd). A program between it and us
 * that closes descriptors may have left the number to another file, which is no secret. */
static tutti_status check_launcher(int fd)
{
    struct stat about;
    bool open = fstat(fd, &about) == 0;
    if (open && S_ISREG(about.st_mode) && about.st_nlink == 0 && fcntl(fd, F_GET_SEALS) >= 0)
        return TUTTI_OK;
    return tutti_fail(TUTTI_IO,
                      "cannot read the secret from the launcher: descriptor %d (TUTTI_SECRET_FD) "
                      "%s; a program between tutti run and this one closes descriptors: let it "
                      "pass them on (Python's subprocess: close_fds=False), or let tutti run start "
                      "this one itself",
                      fd, open ? "is another file" : "is closed");
}

/* As ssh takes keys, and PostgreSQL: one's own nobody else may read; what root has laid out a group
 * may, as in Kubernetes volumes of pods that are not root's (fsGroup). */
static tutti_status check_file(int fd, const char *what, const char *path)
{
    struct stat about;
    if (fstat(fd, &about) != 0)
        return tutti_fail(TUTTI_IO, "cannot look at the %s '%s': %s", what, path, strerror(errno));
    if (!S_ISREG(about.st_mode))
        return tutti_fail(TUTTI_INVALID, "the %s '%s' is not a regular file", what, path);
    bool roots = about.st_uid == 0 && geteuid() != 0;
    if ((about.st_mode & (roots ? 037 : 077)) != 0)
        return tutti_fail(TUTTI_INVALID,
                          "the %s '%s' has mode %04o, so others can read it; run 'chmod 600 %s' (a "
                          "Kubernetes volume: defaultMode: 0400)",
                          what, path, (unsigned)about.st_mode & 07777, path);
    if (about.st_uid != geteuid() && about.st_uid != 0)
        return tutti_fail(TUTTI_INVALID, "the %s '%s' belongs to user %u, not to you", what, path,
                          (unsigned)about.st_uid);
    return TUTTI_OK;
}

tutti_status tutti__secret_open(const char *path, const char *what, const char *source, int *ret_fd)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return tutti_fail(errno == ENOENT ? TUTTI_NOT_FOUND : TUTTI_IO,
                          "cannot open the %s '%s' (%s): %s", what, path, source, strerror(errno));
    tutti_status status = check_file(fd, what, path);
    if (status != TUTTI_OK)
        close(fd);
    else
        *ret_fd = fd;
    return status;
}

static tutti_status read_file(const char *path, tutti_secret *ret_secret)
{
    int fd;
    TUTTI_TRY(tutti__secret_open(path, "secret file", "TUTTI_SECRET_FILE", &fd));
    tutti_status status = read_descriptor(fd, path, ret_secret);
    close(fd);
    return status;
}

/* The environment lies in the process's own memory, from where children take it: it stays, but not
 * in core files. */
static void keep_out_of_cores(const char *text)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)text / page * page, last = (uintptr_t)text + strlen(text);
    (void)madvise((void *)first, last - first, MADV_DONTDUMP);
}

tutti_status tutti__secret_load(int fd, tutti_secret *ret_secret)
{
    const char *path = variable("TUTTI_SECRET_FILE"), *text = variable("TUTTI_SECRET");
    if (fd >= 0) {
        TUTTI_TRY(check_launcher(fd));
        return read_descriptor(fd, "the launcher", ret_secret);
    }
    if (path != NULL)
        return read_file(path, ret_secret);
    if (text != NULL) {
        keep_out_of_cores(text);
        return tutti__secret_set(text, strlen(text), "TUTTI_SECRET", ret_secret);
    }
    *ret_secret = (tutti_secret){0};
    return TUTTI_OK;
}

void tutti__secret_wipe(tutti_secret *secret)
{
    if (secret->bytes != NULL) {
        explicit_bzero(secret->bytes, PAGE);
        munmap(secret->bytes, PAGE);
    }
    *secret = (tutti_secret){0};
}

tutti_status tutti__random_fill(void *data, size_t size)
{
    uint8_t *at = data;
    while (size > 0) {
        ssize_t got = getrandom(at, size, 0);
        if (got < 0 && errno != EINTR)
            return tutti_fail(TUTTI_IO, "the system gives no random numbers: %s", strerror(errno));
        if (got > 0) {
            at += got;
            size -= (size_t)got;
        }
    }
    return TUTTI_OK;
}
