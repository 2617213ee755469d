#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "base/world.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test.h"

static char folder[64], file[96];

static void make_folder(void)
{
    const char *temporary = "/tmp/tutti-world-XXXXXX";
    memcpy(folder, temporary, strlen(temporary) + 1);
    CHECK(mkdtemp(folder) != NULL);
    snprintf(file, sizeof file, "%s/data", folder);
}

static int files_in_folder(void)
{
    int count = 0;
    DIR *open = opendir(folder);
    CHECK(open != NULL);
    for (struct dirent *entry; (entry = readdir(open)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(open);
    return count;
}

static void remove_folder(void)
{
    unlink(file);
    CHECK_INT(rmdir(folder), 0);
}

static tutti_status read_file(const char *path, size_t limit, void **ret_data, size_t *ret_size)
{
    const tutti_world *world = tutti__world();
    return world->read_file(world->self, path, limit, ret_data, ret_size);
}

static tutti_status write_file(const char *path, const void *data, size_t size)
{
    const tutti_world *world = tutti__world();
    return world->write_file(world->self, path, data, size);
}

static void check_round_trip(const char *data, size_t size)
{
    void *back;
    size_t back_size;
    CHECK_OK(write_file(file, data, size));
    CHECK_OK(read_file(file, size, &back, &back_size));
    CHECK_INT(back_size, size);
    CHECK(memcmp(back, data, size) == 0 && ((char *)back)[size] == '\0');
    free(back);
}

TUTTI_TEST(world_files_round_trip)
{
    static char data[100000];
    static const size_t sizes[] = {0, 1, 4094, 4095, 4096, 4097, 8192, sizeof data};
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(i * 7 % 251);
    make_folder();
    for (size_t i = 0; i < TUTTI_COUNT(sizes); i++)
        check_round_trip(data, sizes[i]);
    CHECK_INT(files_in_folder(), 1);
    remove_folder();
}

/* Such files are read by several threads. */
TUTTI_TEST(world_large_files_round_trip)
{
    size_t size = ((size_t)17 << 20) + 12345;
    char *data = malloc(size);
    CHECK(data != NULL);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 7 % 251);
    make_folder();
    check_round_trip(data, size);
    check_round_trip(data, (size_t)8 << 20);
    void *back;
    size_t back_size;
    CHECK_STATUS(read_file(file, ((size_t)8 << 20) - 1, &back, &back_size), TUTTI_TOO_LARGE);
    remove_folder();
    free(data);
}

TUTTI_TEST(world_read_has_a_limit)
{
    void *data = NULL;
    size_t size = 77;
    make_folder();
    CHECK_OK(write_file(file, "0123456789", 10));
    CHECK_STATUS(read_file(file, 9, &data, &size), TUTTI_TOO_LARGE);
    CHECK_CONTAINS(tutti_error_message(), file);
    CHECK(data == NULL && size == 77);
    CHECK_OK(read_file(file, SIZE_MAX, &data, &size));
    CHECK_STR(data, "0123456789");
    free(data);
    remove_folder();
}

/* Files of /proc say that they hold 0 bytes. */
TUTTI_TEST(world_reads_files_of_unknown_size)
{
    void *data;
    size_t size;
    CHECK_OK(read_file("/proc/self/maps", 1 << 24, &data, &size));
    CHECK(size > 0 && strlen(data) == size);
    free(data);
    CHECK_STATUS(read_file("/proc/self/maps", 16, &data, &size), TUTTI_TOO_LARGE);
}

TUTTI_TEST(world_read_refuses_what_is_no_file)
{
    void *data;
    size_t size;
    make_folder();
    CHECK_STATUS(read_file(file, 100, &data, &size), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), file);
    CHECK_STATUS(read_file(folder, 100, &data, &size), TUTTI_INVALID);
    CHECK_INT(mkfifo(file, 0600), 0);
    CHECK_STATUS(read_file(file, 100, &data, &size), TUTTI_INVALID);
    remove_folder();
}

TUTTI_TEST(world_failed_write_leaves_nothing)
{
    make_folder();
    CHECK_INT(mkdir(file, 0700), 0);
    CHECK_STATUS(write_file(file, "x", 1), TUTTI_IO);
    CHECK_INT(files_in_folder(), 1);
    CHECK_INT(rmdir(file), 0);
    CHECK_STATUS(write_file("/no/such/folder/x", "x", 1), TUTTI_NOT_FOUND);
    CHECK_CONTAINS(tutti_error_message(), "/no/such/folder/x");
    remove_folder();
}

TUTTI_TEST(world_clocks_advance)
{
    const tutti_world *world = tutti__world();
    int64_t start = tutti__now_ns();
    uint64_t ticks = tutti__ticks();
    world->sleep_ns(world->self, 20000000);
    double ns = (double)(tutti__now_ns() - start);
    double tick_ns = (double)(tutti__ticks() - ticks) * tutti__tick_ns();
    CHECK(ns >= 20000000);
    CHECK_NEAR(tick_ns / ns, 1, 0.05);
    CHECK(world->wall_ns(world->self) > INT64_C(1600000000) * 1000000000);
}

static int64_t fixed_now(void *self)
{
    return *(int64_t *)self;
}

TUTTI_TEST(world_can_be_replaced)
{
    int64_t now = 12345;
    tutti_world fake = *tutti__world();
    fake.now_ns = fixed_now;
    fake.self = &now;
    tutti__world_replace(&fake);
    int64_t seen = tutti__now_ns();
    tutti__world_replace(NULL);
    CHECK_INT(seen, 12345);
    CHECK(tutti__now_ns() != 12345);
}

/* A pipe is written to; a file in its place would be the end of it. */
TUTTI_TEST(world_writes_to_what_is_no_file)
{
    struct stat about;
    char text[8] = {0};
    make_folder();
    CHECK_INT(mkfifo(file, 0600), 0);
    int fd = open(file, O_RDWR | O_NONBLOCK);
    CHECK(fd >= 0);
    CHECK_OK(write_file(file, "hello", 5));
    CHECK_INT(read(fd, text, sizeof text), 5);
    CHECK_STR(text, "hello");
    CHECK(stat(file, &about) == 0 && S_ISFIFO(about.st_mode));
    tutti_file *opened;
    int64_t size;
    const tutti_world *world = tutti__world();
    CHECK_STATUS(world->open_file(world->self, file, TUTTI_FILE_REPLACE, &opened, &size),
                 TUTTI_INVALID);
    CHECK(stat(file, &about) == 0 && S_ISFIFO(about.st_mode));
    CHECK_STATUS(write_file("/dev/full", "x", 1), TUTTI_IO);
    close(fd);
    remove_folder();
}
