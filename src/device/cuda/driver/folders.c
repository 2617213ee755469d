/* folders.c: see folders.h. A root is looked through in these ways:
 *
 *     root, root/lib64, root/lib              a folder of libraries, or a toolkit
 *     root/nvidia/X/lib, root/X/lib           PyPI's wheels: site-packages, or nvidia in it
 */
#include "device/cuda/driver/folders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "base/world.h"

static const tutti_param cuda_param =
    TUTTI_PARAM("CUDA", "", "folders of CUDA's libraries, joined by ':'; only they are looked in");

static tutti_status folders_add(tutti_cuda_folders *folders, const char *path)
{
    char **grown = realloc(folders->paths, (folders->count + 1) * sizeof *grown);
    if (grown)
        folders->paths = grown;
    char *copy = grown ? strdup(path) : NULL;
    if (!copy)
        return tutti_fail(TUTTI_NO_MEMORY, "no memory for a path");
    grown[folders->count++] = copy;
    return TUTTI_OK;
}

/* Names in a folder; none when it cannot be read. From malloc. */
static char **list(const char *path, size_t *ret_count)
{
    const tutti_world *world = tutti__world();
    char **names = NULL;
    tutti_error before;
    *ret_count = 0;
    tutti__error_capture(TUTTI_OK, &before);
    if (world->list_folder(world->self, path, &names, ret_count) != TUTTI_OK) {
        names = NULL;
        *ret_count = 0;
    }
    tutti__error_restore(&before);
    return names;
}

bool tutti__cuda_folder_holds(const char *folder, const char *file)
{
    size_t count;
    bool found = false;
    char **names = list(folder, &count);
    for (size_t i = 0; i < count && !found; i++)
        found = strcmp(names[i], file) == 0;
    free(names);
    return found;
}

/* path/X/end for each X in path that begins so. */
static tutti_status add_each(tutti_cuda_folders *folders, const char *path, const char *begin,
                             const char *end)
{
    char text[4096];
    size_t count;
    tutti_status status = TUTTI_OK;
    char **names = list(path, &count);
    for (size_t i = 0; i < count && status == TUTTI_OK; i++)
        if (strncmp(names[i], begin, strlen(begin)) == 0 &&
            snprintf(text, sizeof text, "%s/%s/%s", path, names[i], end) < (int)sizeof text)
            status = folders_add(folders, text);
    free(names);
    return status;
}

static tutti_status add_toolkit(tutti_cuda_folders *folders, const char *root)
{
    char text[4096];
    static const char *const inner[] = {"", "/lib64", "/lib"};
    for (size_t i = 0; i < TUTTI_COUNT(inner); i++)
        if (snprintf(text, sizeof text, "%s%s", root, inner[i]) < (int)sizeof text)
            TUTTI_TRY(folders_add(folders, text));
    return TUTTI_OK;
}

static tutti_status add_wheels(tutti_cuda_folders *folders, const char *packages)
{
    char text[4096];
    if (snprintf(text, sizeof text, "%s/nvidia", packages) >= (int)sizeof text)
        return TUTTI_OK;
    return add_each(folders, text, "", "lib");
}

/* base/python3.X/below/nvidia/X/lib */
static tutti_status add_pythons(tutti_cuda_folders *folders, const char *base, const char *below)
{
    tutti_cuda_folders found = {0};
    tutti_status status = add_each(&found, base, "python3", below);
    for (size_t i = 0; i < found.count && status == TUTTI_OK; i++)
        status = add_wheels(folders, found.paths[i]);
    tutti__cuda_folders_free(&found);
    return status;
}

static tutti_status add_environments(tutti_cuda_folders *folders)
{
    static const struct {
        const char *variable, *below;
    } roots[] = {{"VIRTUAL_ENV", "lib"}, {"CONDA_PREFIX", "lib"}, {"HOME", ".local/lib"}};
    char text[4096];
    for (size_t i = 0; i < TUTTI_COUNT(roots); i++) {
        const char *root = getenv(roots[i].variable);
        if (root && root[0] == '/' &&
            snprintf(text, sizeof text, "%s/%s", root, roots[i].below) < (int)sizeof text)
            TUTTI_TRY(add_pythons(folders, text, "site-packages"));
    }
    TUTTI_TRY(add_pythons(folders, "/usr/local/lib", "dist-packages"));
    return add_pythons(folders, "/usr/local/lib", "site-packages");
}

/* The folders of TUTTI_CUDA, in each of the ways. */
static tutti_status add_named(tutti_cuda_folders *folders, const char *list_of_folders)
{
    char text[4096];
    while (*list_of_folders) {
        size_t length = strcspn(list_of_folders, ":");
        if (length > 0 && length < sizeof text) {
            snprintf(text, sizeof text, "%.*s", (int)length, list_of_folders);
            TUTTI_TRY(add_toolkit(folders, text));
            TUTTI_TRY(add_wheels(folders, text));
            TUTTI_TRY(add_each(folders, text, "", "lib"));
        }
        list_of_folders += length + (list_of_folders[length] == ':');
    }
    return TUTTI_OK;
}

static tutti_status add_usual(tutti_cuda_folders *folders, bool of_the_system)
{
    if (of_the_system) {
        TUTTI_TRY(folders_add(folders, ""));
        TUTTI_TRY(folders_add(folders, "/usr/local/nvidia/lib64"));
        return folders_add(folders, "/usr/lib/wsl/lib");
    }
    static const char *const homes[] = {"CUDA_HOME", "CUDA_PATH"};
    for (size_t i = 0; i < TUTTI_COUNT(homes); i++)
        if (getenv(homes[i]) && getenv(homes[i])[0])
            TUTTI_TRY(add_toolkit(folders, getenv(homes[i])));
    TUTTI_TRY(folders_add(folders, ""));
    TUTTI_TRY(add_toolkit(folders, "/usr/local/cuda"));
    return add_environments(folders);
}

tutti_status tutti__cuda_folders(bool of_the_system, tutti_cuda_folders *ret)
{
    tutti_cuda_folders folders = {0};
    const char *named = tutti__param_text(&cuda_param);
    tutti_status status = named[0] ? add_named(&folders, named) : TUTTI_OK;
    if (status == TUTTI_OK && (!named[0] || of_the_system))
        status = add_usual(&folders, of_the_system);
    if (status == TUTTI_OK)
        *ret = folders;
    else
        tutti__cuda_folders_free(&folders);
    return status;
}

void tutti__cuda_folders_free(tutti_cuda_folders *folders)
{
    for (size_t i = 0; i < folders->count; i++)
        free(folders->paths[i]);
    free(folders->paths);
    *folders = (tutti_cuda_folders){0};
}

void tutti__cuda_folders_say(bool of_the_system, char *ret_text, size_t size)
{
    const char *named = tutti__param_text(&cuda_param);
    if (of_the_system)
        snprintf(ret_text, size,
                 "%s%swhere the system looks for libraries, "
                 "/usr/local/nvidia/lib64 and /usr/lib/wsl/lib",
                 named, named[0] ? ", " : "");
    else if (named[0])
        snprintf(ret_text, size, "the folders of TUTTI_CUDA (%s)", named);
    else
        snprintf(ret_text, size,
                 "CUDA_HOME (%s), where the system looks for libraries, /usr/local/cuda, and "
                 "nvidia/*/lib of Python's packages",
                 getenv("CUDA_HOME") ? getenv("CUDA_HOME") : "not set");
}
