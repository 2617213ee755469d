/* world_files_test.c: files that are open for a while, and folders. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "base/world.h"
#include "base/world_files.h"

static char folder[64], path[96];

static const tutti_world *begin(void)
{
    snprintf(folder, sizeof folder, "/tmp/tutti-files-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/data", folder);
    return tutti__world();
}

static size_t names_in_folder(const tutti_world *w)
{
    char **names;
    size_t count;
    CHECK_OK(w->list_folder(w->self, folder, &names, &count));
    free(names);
    return count;
}

static void check_content(const tutti_world *w, const char *expected)
{
    tutti_file *file;
    int64_t size;
    char text[64] = {0};
    size_t got;
    CHECK_OK(w->open_file(w->self, path, TUTTI_FILE_READ, &file, &size));
    CHECK_OK(w->read_at(w->self, file, 0, text, sizeof text - 1, &got));
    CHECK_OK(w->close_file(w->self, file, true));
    CHECK_INT(size, got);
    CHECK_STR(text, expected);
}

static tutti_status write_text(const tutti_world *w, tutti_file_mode mode, const char *text,
                               bool keep)
{
    tutti_file *file;
    int64_t size;
    TUTTI_TRY(w->open_file(w->self, path, mode, &file, &size));
    CHECK_OK(w->write_at(w->self, file, size, text, strlen(text)));
    CHECK_OK(w->sync_file(w->self, file));
    return w->close_file(w->self, file, keep);
}

TUTTI_TEST(world_replaces_a_file_only_when_it_is_kept)
{
    const tutti_world *w = begin();
    CHECK_OK(write_text(w, TUTTI_FILE_REPLACE, "first", true));
    check_content(w, "first");
    CHECK_OK(write_text(w, TUTTI_FILE_REPLACE, "second", false));
    check_content(w, "first");
    CHECK_INT(names_in_folder(w), 1);
    CHECK_OK(write_text(w, TUTTI_FILE_REPLACE, "second", true));
    check_content(w, "second");
    CHECK_OK(write_text(w, TUTTI_FILE_APPEND, " and third", true));
    check_content(w, "second and third");
    CHECK_OK(w->remove_file(w->self, path));
    CHECK_STATUS(w->remove_file(w->self, path), TUTTI_NOT_FOUND);
    CHECK_INT(names_in_folder(w), 0);
    CHECK_OK(w->remove_file(w->self, folder));
}

/* Pieces that end anywhere, a patch of the front, and a file that is not kept. */
TUTTI_TEST(world_writes_an_unread_file_as_any_other)
{
    static const size_t pieces[] = {3, 4093, 100000, 524288, 1, 700001, 5};
    const tutti_world *w = begin();
    size_t total = 0, at = 0, got;
    for (size_t i = 0; i < TUTTI_COUNT(pieces); i++)
        total += pieces[i];
    char *data = malloc(total), *back = malloc(total + 1);
    CHECK(data && back);
    for (size_t i = 0; i < total; i++)
        data[i] = (char)(i * 2654435761u >> 13);
    for (int keep = 1; keep >= 0; keep--) {
        tutti_file *file;
        int64_t size;
        CHECK_OK(w->open_file(w->self, path, TUTTI_FILE_REPLACE_UNREAD, &file, &size));
        at = 0;
        for (size_t i = 0; i < TUTTI_COUNT(pieces); at += pieces[i++])
            CHECK_OK(w->write_at(w->self, file, (int64_t)at, data + at, pieces[i]));
        memcpy(data, "front", 5);
        CHECK_OK(w->write_at(w->self, file, 0, keep ? "front" : "other", 5));
        CHECK_OK(w->close_file(w->self, file, keep == 1));
        CHECK_INT(names_in_folder(w), 1);
        CHECK_OK(w->open_file(w->self, path, TUTTI_FILE_READ, &file, &size));
        CHECK_INT(size, total);
        CHECK_OK(w->read_at(w->self, file, 0, back, total + 1, &got));
        CHECK_INT(got, total);
        CHECK(memcmp(back, data, total) == 0);
        CHECK_OK(w->close_file(w->self, file, true));
    }
    free(data);
    free(back);
    CHECK_OK(w->remove_file(w->self, path));
    CHECK_OK(w->remove_file(w->self, folder));
}

TUTTI_TEST(world_opens_regular_files_only)
{
    const tutti_world *w = begin();
    tutti_file *file;
    int64_t size;
    CHECK_STATUS(w->open_file(w->self, path, TUTTI_FILE_READ, &file, &size), TUTTI_NOT_FOUND);
    CHECK_STATUS(w->open_file(w->self, folder, TUTTI_FILE_READ, &file, &size), TUTTI_INVALID);
    CHECK_STATUS(w->open_file(w->self, "/dev/zero", TUTTI_FILE_READ, &file, &size), TUTTI_INVALID);
    char inside[128];
    snprintf(inside, sizeof inside, "%s/none/x", folder);
    CHECK_STATUS(w->open_file(w->self, inside, TUTTI_FILE_REPLACE, &file, &size), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), inside);
    CHECK_OK(w->remove_file(w->self, folder));
}

TUTTI_TEST(world_lists_a_folder_in_order)
{
    const tutti_world *w = begin();
    char **names, name[128];
    size_t count;
    for (const char *each = "cab"; *each; each++) {
        snprintf(name, sizeof name, "%s/%c", folder, *each);
        CHECK_OK(w->write_file(w->self, name, "x", 1));
    }
    CHECK_OK(w->list_folder(w->self, folder, &names, &count));
    CHECK_INT(count, 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(names[i][0], "abc"[i]);
        snprintf(name, sizeof name, "%s/%s", folder, names[i]);
        CHECK_OK(w->remove_file(w->self, name));
    }
    free(names);
    CHECK_OK(w->remove_file(w->self, folder));
    CHECK_STATUS(w->list_folder(w->self, folder, &names, &count), TUTTI_NOT_FOUND);
}

TUTTI_TEST(world_removes_only_what_was_abandoned)
{
    const tutti_world *w = begin();
    tutti_file *file;
    int64_t size;
    char **names, temporary[400];
    size_t count;
    CHECK_OK(w->open_file(w->self, path, TUTTI_FILE_REPLACE, &file, &size));
    CHECK_OK(w->list_folder(w->self, folder, &names, &count));
    CHECK_INT(count, 1);
    snprintf(temporary, sizeof temporary, "%s/%s", folder, names[0]);
    free(names);
    CHECK_OK(w->remove_abandoned(w->self, temporary));
    CHECK_INT(names_in_folder(w), 1); /* its writer lives */
    CHECK_OK(w->close_file(w->self, file, true));
    CHECK_OK(w->write_file(w->self, temporary, "x", 1));
    CHECK_OK(w->remove_abandoned(w->self, temporary));
    CHECK_OK(w->remove_abandoned(w->self, temporary)); /* gone is fine */
    CHECK_INT(names_in_folder(w), 1);
    CHECK_OK(w->remove_file(w->self, path));
    CHECK_OK(w->remove_file(w->self, folder));
}

static bool is_link(const char *name)
{
    struct stat about;
    return lstat(name, &about) == 0 && S_ISLNK(about.st_mode);
}

static void check_file(const tutti_world *w, const char *name, const char *expected)
{
    void *data;
    size_t size;
    CHECK_OK(w->read_file(w->self, name, 100, &data, &size));
    CHECK_STR(data, expected);
    free(data);
}

/* Links from one folder to a file in another, once by way of a second link, which is relative. */
static void check_links(const tutti_world *w, const char *elsewhere)
{
    char file[200], second[200], previous[200];
    snprintf(file, sizeof file, "%s/file", elsewhere);
    snprintf(second, sizeof second, "%s/second", elsewhere);
    snprintf(previous, sizeof previous, "%s/previous", folder);
    CHECK_INT(symlink("file", second), 0);
    CHECK_INT(symlink(second, path), 0);
    CHECK_OK(w->write_file(w->self, path, "one", 3)); /* where the link points to nothing yet */
    check_file(w, file, "one");
    CHECK_OK(write_text(w, TUTTI_FILE_REPLACE, "two", true));
    check_file(w, file, "two");
    CHECK_OK(write_text(w, TUTTI_FILE_APPEND, " and", true));
    CHECK_OK(w->link_file(w->self, path, previous));
    CHECK_OK(write_text(w, TUTTI_FILE_REPLACE_UNREAD, "three", true));
    check_file(w, file, "three");
    check_file(w, previous, "two and");
    CHECK_OK(w->link_file(w->self, path, previous));
    CHECK_OK(w->write_file(w->self, path, "four", 4));
    check_file(w, file, "four");
    check_file(w, previous, "three");
    CHECK(is_link(path) && is_link(second) && !is_link(file));
    CHECK_INT(names_in_folder(w), 2);
}

TUTTI_TEST(world_writes_the_file_behind_a_link)
{
    char elsewhere[2][64] = {"/tmp/tutti-linked-XXXXXX", "/dev/shm/tutti-linked-XXXXXX"};
    for (int i = 0; i < 2; i++) { /* on this file system, and mostly on another one */
        const tutti_world *w = begin();
        char command[300];
        CHECK(mkdtemp(elsewhere[i]) != NULL);
        check_links(w, elsewhere[i]);
        snprintf(command, sizeof command, "rm -r %s %s", folder, elsewhere[i]);
        CHECK_INT(system(command), 0);
    }
}

TUTTI_TEST(world_refuses_links_that_lead_in_a_circle)
{
    const tutti_world *w = begin();
    tutti_file *file;
    int64_t size;
    CHECK_INT(symlink("data", path), 0);
    CHECK_STATUS(w->write_file(w->self, path, "one", 3), TUTTI_IO);
    CHECK(strstr(tutti_error_message(), path) != NULL);
    CHECK_STATUS(w->open_file(w->self, path, TUTTI_FILE_REPLACE, &file, &size), TUTTI_IO);
    CHECK_OK(w->remove_file(w->self, path));
    CHECK_OK(w->remove_file(w->self, folder));
}

TUTTI_TEST(what_cannot_be_synced_is_done_with)
{
    int ends[2];
    CHECK_INT(pipe(ends), 0);
    CHECK_INT(tutti__sync(ends[1]), 0);
    close(ends[0]);
    close(ends[1]);
    CHECK_INT(tutti__sync(ends[1]), EBADF);
}

/* In a child, which the signal would kill. */
TUTTI_TEST(a_file_beyond_the_limit_is_a_message)
{
    const tutti_world *w = begin();
    static char bytes[100000];
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {5000, 5000};
        signal(SIGXFSZ, SIG_DFL);
        setrlimit(RLIMIT_FSIZE, &limit);
        tutti_status written = w->write_file(w->self, path, bytes, sizeof bytes);
        _exit(written == TUTTI_IO && strstr(tutti_error_message(), "File too large") ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    CHECK_INT(names_in_folder(w), 0);
    CHECK_OK(w->remove_file(w->self, folder));
}
