/* world_files.c: the real world's open files and folders. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "base/world_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/standard.h"

/* Past the cache go whole blocks only, from memory that is aligned like them. The stage stays in a
 * core's cache, so that filling it costs little beside what the system would do page by page. */
enum { STAGE = 512 << 10, BLOCK = 4096 };

struct tutti_file {
    int fd;
    tutti_file_mode mode;
    char *path;
    char *name; /* the temporary file of REPLACE, else room for a folder's name */
    size_t name_size;
    /* REPLACE_UNREAD, while it is written from front to back; else NULL: bytes that are still to be
     * written, `staged` from `stage_at` on, which is a multiple of BLOCK. */
    char *stage;
    size_t staged;
    int64_t stage_at;
    bool direct; /* writes go past the system's cache */
};

static bool replaces(const tutti_file *file)
{
    return file->mode == TUTTI_FILE_REPLACE || file->mode == TUTTI_FILE_REPLACE_UNREAD;
}

static void forget(tutti_file *file)
{
    if (file == NULL)
        return;
    if (file->fd >= 0)
        close(file->fd);
    free(file->path);
    free(file->name);
    free(file->stage);
    free(file);
}

static void set_direct(tutti_file *file, bool direct)
{
    int flags = fcntl(file->fd, F_GETFL);
    if (flags >= 0 && fcntl(file->fd, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0)
        file->direct = direct;
}

/* Where the file system knows no way past its cache, the file is written like any other. */
static void begin_stage(tutti_file *file)
{
    set_direct(file, true);
    if (file->direct && (file->stage = tutti__aligned_alloc(BLOCK, STAGE)) == NULL)
        set_direct(file, false);
}

static int open_mode(tutti_file *file)
{
    switch (file->mode) {
    case TUTTI_FILE_REPLACE:
    case TUTTI_FILE_REPLACE_UNREAD:
        return tutti__open_beside(file->path, file->name, file->name_size);
    case TUTTI_FILE_APPEND:
        tutti__standard_file_limit();
        return open(file->path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    default:
        return open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    }
}

tutti_status tutti__real_open_file(void *self, const char *path, tutti_file_mode mode,
                                   tutti_file **ret_file, int64_t *ret_size)
{
    TUTTI_UNUSED(self);
    tutti_file *file = calloc(1, sizeof *file);
    if (file != NULL) {
        *file = (tutti_file){.fd = -1, .mode = mode};
        file->path = replaces(file) ? tutti__behind_links(path) : strdup(path);
        file->name_size = file->path != NULL ? strlen(file->path) + 64 : 0;
        file->name = file->path != NULL ? malloc(file->name_size) : NULL;
    }
    if (file == NULL || file->path == NULL || file->name == NULL) {
        int error = file != NULL && file->path == NULL ? errno : ENOMEM;
        forget(file);
        return error != ENOMEM ? tutti__fail_path(error, "write", path)
                               : tutti_fail(TUTTI_NO_MEMORY, "no memory to open '%s'", path);
    }
    bool folder = replaces(file) && tutti__is_folder(path);
    bool special = replaces(file) && tutti__is_nonfinite(path);
    file->fd = special || folder ? -1 : open_mode(file);
    struct stat about = {0};
    tutti_status status = TUTTI_OK;
    if (folder)
        status = tutti_fail(TUTTI_INVALID, "'%s' is a folder; a file is to be written there", path);
    else if (special)
        status = tutti_fail(TUTTI_INVALID, "'%s' is not a regular file", path);
    else if (file->fd < 0)
        status = tutti__fail_path(errno, mode == TUTTI_FILE_READ ? "open" : "write", path);
    else if (fstat(file->fd, &about) != 0)
        status = tutti__fail_path(errno, "look at", path);
    else if (!S_ISREG(about.st_mode))
        status = tutti_fail(TUTTI_INVALID, "'%s' is not a regular file", path);
    if (status != TUTTI_OK) {
        forget(file);
        return status;
    }
    if (mode == TUTTI_FILE_REPLACE_UNREAD)
        begin_stage(file);
    *ret_file = file;
    *ret_size = (int64_t)about.st_size;
    return TUTTI_OK;
}

tutti_status tutti__real_read_at(void *self, tutti_file *file, int64_t offset, void *data,
                                 size_t size, size_t *ret_got)
{
    TUTTI_UNUSED(self);
    size_t done = 0;
    while (done < size) {
        ssize_t got =
            pread(file->fd, (char *)data + done, size - done, (off_t)offset + (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tutti__fail_path(errno, "read", file->path);
        if (got == 0)
            break;
        done += (size_t)got;
    }
    *ret_got = done;
    return TUTTI_OK;
}

/* 0 or an errno. What the file system does not take past its cache goes through it. */
static int write_bytes(tutti_file *file, int64_t offset, const char *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t put = pwrite(file->fd, data + done, size - done, (off_t)offset + (off_t)done);
        if (put < 0 && errno == EINVAL && file->direct)
            set_direct(file, false);
        else if (put < 0 && errno != EINTR)
            return errno;
        done += put > 0 ? (size_t)put : 0;
    }
    return 0;
}

/* Everything that was given is with the system, and the rest goes through its cache; 0 or an errno.
 */
static int end_stage(tutti_file *file)
{
    if (file->stage == NULL)
        return 0;
    size_t whole = file->staged / BLOCK * BLOCK;
    int error = write_bytes(file, file->stage_at, file->stage, whole);
    set_direct(file, false);
    if (error == 0)
        error = write_bytes(file, file->stage_at + (int64_t)whole, file->stage + whole,
                            file->staged - whole);
    free(file->stage);
    file->stage = NULL;
    return error;
}

static int write_staged(tutti_file *file, const char *data, size_t size)
{
    int error = 0;
    while (size > 0 && error == 0) {
        size_t piece = size < STAGE - file->staged ? size : STAGE - file->staged;
        memcpy(file->stage + file->staged, data, piece);
        file->staged += piece;
        data += piece;
        size -= piece;
        if (file->staged == STAGE) {
            error = write_bytes(file, file->stage_at, file->stage, STAGE);
            file->stage_at += STAGE;
            file->staged = 0;
        }
    }
    return error;
}

tutti_status tutti__real_write_at(void *self, tutti_file *file, int64_t offset, const void *data,
                                  size_t size)
{
    TUTTI_UNUSED(self);
    int error = 0;
    if (file->stage != NULL && offset == file->stage_at + (int64_t)file->staged)
        error = write_staged(file, data, size);
    else {
        error = end_stage(file);
        if (error == 0)
            error = write_bytes(file, offset, data, size);
    }
    return error == 0 ? TUTTI_OK : tutti__fail_path(error, "write", file->path);
}

/* 0 or an errno. */
static int sync_bytes(tutti_file *file)
{
    int error = end_stage(file);
    return error != 0 ? error : tutti__sync(file->fd);
}

tutti_status tutti__real_sync_file(void *self, tutti_file *file)
{
    TUTTI_UNUSED(self);
    int error = sync_bytes(file);
    return error == 0 ? TUTTI_OK : tutti__fail_path(error, "sync", file->path);
}

/* Until the rename nothing at the path changes; after it only the folder's sync can fail. The file
 * stays open until it is renamed: its lock says that it is not abandoned. */
static int finish_replacement(tutti_file *file, bool keep)
{
    int error = keep ? sync_bytes(file) : 0;
    if (keep && error == 0 && rename(file->name, file->path) != 0)
        error = errno;
    if (!keep || error != 0)
        unlink(file->name);
    close(file->fd);
    file->fd = -1;
    if (keep && error == 0)
        error = tutti__sync_folder(file->path, file->name, file->name_size);
    return error;
}

tutti_status tutti__real_close_file(void *self, tutti_file *file, bool keep)
{
    TUTTI_UNUSED(self);
    if (file == NULL)
        return TUTTI_OK;
    int error = 0;
    if (replaces(file))
        error = finish_replacement(file, keep);
    else if (file->mode == TUTTI_FILE_APPEND && keep)
        error = tutti__sync(file->fd);
    tutti_status status =
        error == 0 ? TUTTI_OK : tutti__fail_path(error, "finish writing", file->path);
    forget(file);
    return status;
}

/* "." and ".." are no contents. */
static int is_content(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Pointers first, then the bytes they point to. */
static char **pack_names(struct dirent **found, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += sizeof(char *) + strlen(found[i]->d_name) + 1;
    char **names = malloc(bytes);
    char *at = names != NULL ? (char *)(names + count) : NULL;
    for (size_t i = 0; names != NULL && i < count; i++) {
        size_t size = strlen(found[i]->d_name) + 1;
        names[i] = memcpy(at, found[i]->d_name, size);
        at += size;
    }
    return names;
}

tutti_status tutti__real_list_folder(void *self, const char *path, char ***ret_names,
                                     size_t *ret_count)
{
    TUTTI_UNUSED(self);
    struct dirent **found = NULL;
    int count = scandir(path, &found, is_content, by_bytes);
    if (count < 0)
        return tutti__fail_path(errno, "list the folder", path);
    char **names = count > 0 ? pack_names(found, (size_t)count) : NULL;
    for (int i = 0; i < count; i++)
        free(found[i]);
    free(found);
    if (count > 0 && names == NULL)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for the %d names in '%s'", count, path);
    *ret_names = names;
    *ret_count = (size_t)count;
    return TUTTI_OK;
}

tutti_status tutti__real_remove_file(void *self, const char *path)
{
    TUTTI_UNUSED(self);
    return remove(path) == 0 ? TUTTI_OK : tutti__fail_path(errno, "remove", path);
}

static bool is_link(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISLNK(about.st_mode);
}

/* The file that a symbolic link points to stays on its own file system: it is renamed there, and
 * `second` points to it. 0 or an errno. */
static int move_behind_link(const char *path, const char *beside, const char *second)
{
    char moved[PATH_MAX + 16], *file = realpath(path, NULL);
    if (file == NULL)
        return errno;
    snprintf(moved, sizeof moved, "%s.previous", file);
    int error =
        rename(file, moved) != 0 || symlink(moved, beside) != 0 || rename(beside, second) != 0
            ? errno
            : 0;
    free(file);
    return error;
}

/* Where a file system knows no second names, the file moves to the second. */
tutti_status tutti__real_link_file(void *self, const char *path, const char *second)
{
    TUTTI_UNUSED(self);
    char beside[4300];
    if (tutti__is_folder(path) || tutti__is_folder(second))
        return tutti_fail(TUTTI_INVALID, "'%s' is a folder, and should be a file",
                          tutti__is_folder(path) ? path : second);
    if (snprintf(beside, sizeof beside, "%s.link", second) >= (int)sizeof beside)
        return tutti_fail(TUTTI_TOO_LARGE, "the path '%.80s' is too long", second);
    unlink(beside);
    if (linkat(AT_FDCWD, path, AT_FDCWD, beside, AT_SYMLINK_FOLLOW) == 0) {
        int error = rename(beside, second) == 0 ? 0 : errno;
        unlink(beside); /* it stays where both were names of one file already */
        return error == 0 ? TUTTI_OK : tutti__fail_path(error, "rename", beside);
    }
    if (errno == ENOENT)
        return tutti__fail_path(errno, "link", path);
    int error = is_link(path)               ? move_behind_link(path, beside, second)
                : rename(path, second) != 0 ? errno
                                            : 0;
    return error == 0 ? TUTTI_OK : tutti__fail_path(error, "rename", path);
}

/* Where a file system knows no locks, nothing tells the dead from the living: the file stays. */
tutti_status tutti__real_remove_abandoned(void *self, const char *temporary)
{
    TUTTI_UNUSED(self);
    int fd = open(temporary, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error = 0;
    if (fd < 0)
        return errno == ENOENT ? TUTTI_OK : tutti__fail_path(errno, "open", temporary);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && unlink(temporary) != 0 && errno != ENOENT)
        error = errno;
    close(fd);
    return error == 0 ? TUTTI_OK : tutti__fail_path(error, "remove", temporary);
}
