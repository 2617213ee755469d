/* onnx_outside.c: tensors whose data stands in another file. That file is named by a path that must
 * stay in the model's folder: not absolute, without "..", and no link that leads out of it. */
#include <stdlib.h>
#include <string.h>

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

void tutti__onnx_close_outside(tutti_onnx_decoder *d)
{
    const tutti_world *world = tutti__world();
    if (d->location)
        world->close_file(world->self, d->outside, false);
    d->location = NULL;
}

static tutti_status open_outside(tutti_onnx_decoder *d, const char *tensor, const char *location)
{
    const tutti_world *world = tutti__world();
    size_t folder;
    char *path = joined(d->file, location, &folder);
    if (!path)
        return tutti__onnx_no_memory(d);
    tutti_status status = TUTTI_OK;
    if (!tutti__stays_below(path, folder))
        status = tutti_fail(TUTTI_INVALID,
                            "%s: the data of tensor '%s' stands in '%s', a link that leads out of "
                            "the model's folder",
                            d->file, tensor, location);
    else
        status =
            world->open_file(world->self, path, TUTTI_FILE_READ, &d->outside, &d->outside_bytes);
    if (status == TUTTI_OK)
        d->location = location;
    free(path);
    return status;
}

tutti_status tutti__onnx_find_outside(tutti_onnx_decoder *d, const char *tensor,
                                      const tutti_onnx_outside *where, size_t size)
{
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
    if (d->location && strcmp(d->location, where->location) != 0)
        tutti__onnx_close_outside(d);
    if (!d->location)
        TUTTI_TRY(open_outside(d, tensor, where->location));
    if (where->offset < 0 || where->offset > d->outside_bytes ||
        size > (uint64_t)(d->outside_bytes - where->offset))
        return tutti_fail(
            TUTTI_CORRUPT, "%s: '%s' has %lld bytes; tensor '%s' wants %zu from %lld on", d->file,
            where->location, (long long)d->outside_bytes, tensor, size, (long long)where->offset);
    return TUTTI_OK;
}

tutti_status tutti__onnx_take_outside(tutti_onnx_decoder *d, const char *tensor,
                                      const tutti_onnx_outside *where, void *to, size_t size)
{
    const tutti_world *world = tutti__world();
    size_t got = 0;
    TUTTI_TRY(tutti__onnx_find_outside(d, tensor, where, size));
    if (size > 0)
        TUTTI_TRY(world->read_at(world->self, d->outside, where->offset, to, size, &got));
    if (got < size)
        return tutti_fail(TUTTI_CORRUPT, "%s: '%s' ends before tensor '%s' does", d->file,
                          where->location, tensor);
    return TUTTI_OK;
}
