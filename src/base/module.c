/* module.c: where modules may lie. See module.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1 /* dladdr */
#endif
#include "base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/params.h"

static void *open_in(const char *folder, const char *inner, const char *file)
{
    char path[PATH_MAX];
    if (!folder[0] || snprintf(path, sizeof path, "%s/%s%s", folder, inner, file) >= PATH_MAX)
        return NULL;
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

/* In what a build or an installation has beside the file at `path`. */
static void *open_beside(const char *path, const char *room, const char *file)
{
    static const char *const inner[] = {
        "",
        "tutti/",
        "../lib/tutti/",
#if defined(__aarch64__)
        "../lib/aarch64-linux-gnu/tutti/",
#elif defined(__x86_64__)
        "../lib/x86_64-linux-gnu/tutti/",
#endif
    };
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (!slash)
        return NULL;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    void *found = open_in(folder, room, file);
    for (size_t i = 0; !found && i < sizeof inner / sizeof *inner; i++)
        found = open_in(folder, inner[i], file);
    return found;
}

void *tutti__module_open(const char *room, const char *file)
{
    static const tutti_param modules = TUTTI_PARAM("MODULES", "", "folder of loadable modules");
    char program[PATH_MAX];
    Dl_info library;
    void *found = open_in(tutti__param_text(&modules), "", file);
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = 0;
    if (!found)
        found = open_beside(program, room, file);
    if (!found && dladdr(&modules, &library) && library.dli_fname)
        found = open_beside(library.dli_fname, room, file);
    if (!found)
        found = open_in(TUTTI_MODULE_FOLDER, "", file);
    return found ? found : dlopen(file, RTLD_NOW | RTLD_GLOBAL);
}
