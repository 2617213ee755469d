/* onnx_outside.c: tensors whose data stands in another file. That file is named by a path that must
 * stay in the model's folder: not absolute, without "..", and no link that leads out of it. */
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "bridge/onnx_decode.h"

/* Parts of the path are names: not empty at its start, and none of them "..". */
static bool stays_inside(const char *path)
{
    if (path[0] == 0 || path[0] == '/' || strchr(path, '\\') || strchr(path, ':'))
        return false;
    for (const char *at = path; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL)
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == 0))
            return false;
    return true;
}

static char *joined(const char *file, const char *location, size_t *ret_folder)
{
    const char *slash = strrchr(file, '/');
    size_t folder = slash ? (size_t)(slash - file) + 1 : 0;
    char *path = malloc(folder + strlen(location) + 1);
    if (!path)
        return NULL;
    memcpy(path, file, folder);
    memcpy(path + folder, location, strlen(location) + 1);
    *ret_folder = folder;
    return path;
}

/* Where links lead: the file is still below the folder. A path that the system does not know is the
 * world's to judge. */
static bool leads_inside(char *path, size_t folder)
{
    char *real = realpath(path, NULL), *above;
    if (!real)
        return true;
    char kept = path[folder];
    path[folder] = 0;
    above = realpath(folder > 0 ? path : ".", NULL);
    path[folder] = kept;
    size_t size = above ? strlen(above) : 0;
    bool inside = above && strncmp(real, above, size) == 0 &&
                  (real[size] == '/' || (size == 1 && above[0] == '/'));
    free(real);
    free(above);
    return inside;
}

static tutti_status read_bytes(const char *path, const char *tensor,
                               const tutti_onnx_outside *where, void *to, size_t size)
{
    const tutti_world *world = tutti__world();
    tutti_file *file;
    int64_t whole;
    size_t got = 0;
    TUTTI_TRY(world->open_file(world->self, path, TUTTI_FILE_READ, &file, &whole));
    tutti_status status = TUTTI_OK;
    if (where->offset < 0 || (uint64_t)where->offset + size > (uint64_t)whole)
        status = tutti_fail(TUTTI_CORRUPT, "%s: has %lld bytes; tensor '%s' wants %zu from %lld on",
                            path, (long long)whole, tensor, size, (long long)where->offset);
    if (status == TUTTI_OK && size > 0)
        status = world->read_at(world->self, file, where->offset, to, size, &got);
    if (status == TUTTI_OK && got < size)
        status = tutti_fail(TUTTI_CORRUPT, "%s: ends before tensor '%s' does", path, tensor);
    tutti_status closed = world->close_file(world->self, file, false);
    return status == TUTTI_OK ? closed : status;
}

tutti_status tutti__onnx_take_outside(const tutti_onnx_decoder *d, const char *tensor,
                                      const tutti_onnx_outside *where, void *to, size_t size)
{
    size_t folder;
    if (d->inside)
        return tutti_fail(
            TUTTI_UNSUPPORTED,
            "%s: the data of tensor '%s' stands in the file '%s'; read the model from "
            "its folder, or save it as one file",
            d->file, tensor, where->location);
    if (!stays_inside(where->location))
        return tutti_fail(TUTTI_INVALID,
                          "%s: the data of tensor '%s' stands in '%s', which may not be read: only "
                          "files in the model's folder may",
                          d->file, tensor, where->location);
    char *path = joined(d->file, where->location, &folder);
    if (!path)
        return tutti__onnx_no_memory(d);
    tutti_status status = TUTTI_OK;
    if (!leads_inside(path, folder))
        status = tutti_fail(TUTTI_INVALID,
                            "%s: the data of tensor '%s' stands in '%s', a link that leads out of "
                            "the model's folder",
                            d->file, tensor, where->location);
    else
        status = read_bytes(path, tensor, where, to, size);
    free(path);
    return status;
}
