/* test_folder.h: a folder for a test's files, which goes with the test. */
#ifndef TUTTI_DATA_TEST_FOLDER_H
#define TUTTI_DATA_TEST_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test.h"
#include "base/world.h"

typedef struct test_folder {
    char path[64], file[160];
} test_folder;

static inline void test_folder_make(test_folder *folder)
{
    strcpy(folder->path, "/tmp/tutti-data-XXXXXX");
    CHECK(mkdtemp(folder->path) != NULL);
}

/* The path of a file in it; valid until the next call. */
static inline const char *test_folder_name(test_folder *folder, const char *name)
{
    snprintf(folder->file, sizeof folder->file, "%s/%s", folder->path, name);
    return folder->file;
}

static inline const char *test_folder_write(test_folder *folder, const char *name, const void *data,
                                            size_t size)
{
    remove(test_folder_name(folder, name)); /* cutting a file short waits for the disk */
    FILE *file = fopen(folder->file, "wb");
    CHECK(file != NULL && fwrite(data, 1, size, file) == size);
    CHECK(fclose(file) == 0);
    return folder->file;
}

static inline void test_folder_remove(test_folder *folder)
{
    const tutti_world *world = tutti__world();
    char **names, path[400];
    size_t count;
    CHECK_OK(world->list_folder(world->self, folder->path, &names, &count));
    for (size_t i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder->path, names[i]);
        CHECK_OK(world->remove_file(world->self, path));
    }
    free(names);
    CHECK_OK(world->remove_file(world->self, folder->path));
}

#endif
