/* corpus.c: every fuzz target on its corpus once, without clang: corpus FOLDER */
#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int target(const uint8_t *data, size_t size);
#define TARGET(name) target name;
#include "targets.h"
#undef TARGET

static const struct {
    const char *name;
    target *run;
} targets[] = {
#define TARGET(name) {#name, name},
#include "targets.h"
#undef TARGET
};

static char path[4096]; /* of the file at work */

static void say_where(int number)
{
    (void)!write(STDERR_FILENO, path, strlen(path));
    (void)!write(STDERR_FILENO, ": ended here\n", 13);
    signal(number, SIG_DFL);
    raise(number);
}

static void *read_all(size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    void *data = size >= 0 ? malloc((size_t)size + 1) : NULL;
    if (data &&
        (fseek(file, 0, SEEK_SET) != 0 || fread(data, 1, (size_t)size, file) != (size_t)size)) {
        free(data);
        data = NULL;
    }
    if (file)
        fclose(file);
    *ret_size = data ? (size_t)size : 0;
    return data;
}

/* How many files it has run on, or -1. */
static int run_on(target *run, const char *folder)
{
    DIR *all = opendir(folder);
    int count = 0;
    for (const struct dirent *each; all && count >= 0 && (each = readdir(all));) {
        size_t size;
        if (each->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, each->d_name);
        uint8_t *data = read_all(&size);
        if (data)
            run(data, size);
        count = data ? count + 1 : -1;
        free(data);
    }
    if (all)
        closedir(all);
    return all ? count : -1;
}

int main(int argc, char **argv)
{
    const char *folder = argc > 1 ? argv[1] : "tests/fuzz/corpus";
    int passed = 0, failed = 0;
    signal(SIGABRT, say_where);
    signal(SIGSEGV, say_where);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char place[3000];
        snprintf(place, sizeof place, "%s/%s", folder, targets[i].name);
        int files = run_on(targets[i].run, place);
        if (files > 0)
            passed++;
        else
            fprintf(stderr, "%s: %s\n", place, files < 0 ? "cannot be read" : "is empty"), failed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
